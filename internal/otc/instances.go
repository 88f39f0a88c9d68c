// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/flavors"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
)

// Instance returns the instance as of notBefore or later; nil if the cloud has no such instance. If the id is a node's,
// it returns the node's instance, which has another id. A replica that is not in the list is left out.
func (c *Cloud) Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	byID, err := c.instances.Get(ctx, project{}, notBefore)
	if err != nil {
		return nil, err
	}
	found, ok := byID[id]
	for _, other := range byID {
		if !ok && slices.Contains(other.NodeIDs, id) {
			found, ok = other, true
		}
	}
	if !ok {
		return nil, nil
	}
	var replicas []autopilot.Replica
	for _, r := range found.Replicas {
		if of, ok := byID[r.ID]; ok {
			replicas = append(replicas, autopilot.Replica{
				ID: of.ID, Name: of.Name, VCPUs: of.VCPUs, MemoryGB: of.MemoryGB, VolumeGB: of.VolumeGB,
			})
		}
	}
	found.Replicas = replicas
	return &found, nil
}

// ListInstances lists all instances of the project. Of replicas it returns only the ids.
func (c *Cloud) ListInstances(ctx context.Context) ([]autopilot.Instance, error) {
	return c.listInstances(ctx, instances.ListOpts{})
}

// readInstance reads one instance. The error wraps ErrNotFound if there is none. The API has only a filter for it.
func (c *Cloud) readInstance(ctx context.Context, id string) (autopilot.Instance, error) {
	found, err := c.listInstances(ctx, instances.ListOpts{Id: id}, id)
	if err != nil {
		return autopilot.Instance{}, err
	}
	for _, i := range found {
		if i.ID == id {
			return i, nil
		}
	}
	return autopilot.Instance{}, c.transport.fault(opListInstances, http.StatusNotFound, errors.New("no instance "+id))
}

func (c *Cloud) listInstances(ctx context.Context, opts instances.ListOpts, ids ...string) ([]autopilot.Instance, error) {
	return everyPage(
		func(r instances.InstanceResponse) string { return r.Id }, instanceOf,
		func(offset int, _ string) ([]instances.InstanceResponse, int, error) {
			opts.Offset, opts.Limit = offset, pageSize
			page, err := instances.List(c.client(ctx, opListInstances, ids...), opts)
			if err != nil {
				return nil, 0, c.transport.wrapError(opListInstances, err)
			}
			return page.Instances, page.TotalCount, nil
		})
}

func instanceOf(r instances.InstanceResponse) autopilot.Instance {
	i := autopilot.Instance{
		ID: r.Id, Name: r.Name, Status: r.Status, Mode: strings.ToLower(r.Type),
		Engine: r.DataStore.Type, Version: r.DataStore.Version, Flavor: r.FlavorRef,
		VCPUs: number(r.Cpu), MemoryGB: number(r.Mem), VolumeGB: r.Volume.Size,
	}
	for _, n := range r.Nodes {
		i.NodeIDs = append(i.NodeIDs, n.Id)
		if !slices.Contains(i.Zones, n.AvailabilityZone) {
			i.Zones = append(i.Zones, n.AvailabilityZone)
		}
		if n.Role == "master" {
			i.Primary = n.Id
		}
	}
	// The cloud lists nodes in any order. Without sorting, the status would change with it.
	slices.Sort(i.NodeIDs)
	slices.Sort(i.Zones)
	for _, other := range r.RelatedInstance {
		if other.Type == "replica" {
			i.Replicas = append(i.Replicas, autopilot.Replica{ID: other.Id})
		}
	}
	return i
}

func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// catalogueUsableFor is how old a catalogue may be, because a flavor may be sold out at any time.
const catalogueUsableFor = 5 * time.Minute

type release struct{ engine, version string }

// Catalogue returns the flavors of the instance's engine and version, at most five minutes old. An instance may report a
// minor version that the catalogue does not have, such as 8.0.28 for 8.0. While the cloud does not answer, Catalogue
// returns the last one, however old. Callers must not modify the result.
func (c *Cloud) Catalogue(ctx context.Context, inst autopilot.Instance) (catalogue []flavors.Flavor, err error) {
	for version, more := inst.Version, true; more; version, more = withoutMinor(version) {
		key := release{inst.Engine, version}
		catalogue, err = c.catalogues.Get(ctx, key, c.now().Add(-catalogueUsableFor))
		if last, ok := c.catalogues.Last(key); err != nil && ok {
			catalogue, err = last.Value, nil
		}
		if err != nil || len(catalogue) > 0 {
			break
		}
	}
	return catalogue, err
}

func withoutMinor(version string) (string, bool) {
	i := strings.LastIndexByte(version, '.')
	return version[:max(i, 0)], i > 0
}

// ListFlavors lists the catalogue of an engine and version (RDS api: querying_database_specifications.rst).
func (c *Cloud) ListFlavors(ctx context.Context, engine, version string) ([]flavors.Flavor, error) {
	rows, err := sdk.ListFlavors(c.client(ctx, opListFlavors, engine),
		sdk.ListOpts{DatabaseName: engine, VersionName: version})
	if err != nil {
		return nil, c.transport.wrapError(opListFlavors, err)
	}
	list := make([]flavors.Flavor, 0, len(rows))
	for _, r := range rows {
		list = append(list, flavors.Flavor{
			Code: r.SpecCode, Engine: engine, Versions: r.VersionName, Mode: r.InstanceMode,
			VCPUs: number(r.VCPUs), MemoryGB: r.RAM, Zones: r.AzStatus,
		})
	}
	return list, nil
}

// ResizeList returns the flavor codes that this instance may change to. It returns an autopilot.RefusedError if the
// cloud has no such list, does not serve this engine, or does not let the service read it. The SDK lacks the call
// (RDS api: querying_available_instance_classes_for_a_db_instance.rst).
func (c *Cloud) ResizeList(ctx context.Context, inst autopilot.Instance) (codes []string, err error) {
	var reply struct {
		Groups []struct {
			Flavors []struct {
				Code string `json:"code"`
			} `json:"compute_flavors"`
		} `json:"flavor_groups"`
	}
	path := "instances/" + inst.ID + "/flavors-resize"
	err = c.doRequest(ctx, opListResizeTargets, http.MethodGet, path, nil, &reply, inst.ID)
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status { // another one, such as 409 of a busy instance, says nothing about the list
		case http.StatusNotImplemented, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
			return nil, refused(e, err)
		}
	}
	if err != nil {
		return nil, err
	}
	codes = []string{}
	for _, g := range reply.Groups {
		for _, f := range g.Flavors {
			codes = append(codes, f.Code)
		}
	}
	return codes, nil
}
