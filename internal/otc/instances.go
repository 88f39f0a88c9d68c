// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
)

// Instance is a database as the cloud has it (RDS api: querying_db_instances.rst).
type Instance struct {
	ID         string
	Name       string
	Status     string // in the cloud's words, such as ACTIVE, MODIFYING, STORAGE FULL
	Mode       string // single, ha or replica
	Engine     string // MySQL, PostgreSQL or SQLServer
	Version    string
	Flavor     string // with the suffix of the mode
	VCPUs      int
	MemoryGB   int
	VolumeGB   int
	VolumeType string
	Nodes      []Node
	ReplicaOf  string   // the primary's id
	Replicas   []string // ids of its read replicas
}

// Node is one machine of an instance.
type Node struct {
	ID     string
	Role   string // master, slave or readreplica
	Status string
	Zone   string
}

// Instances lists all of the project.
func (c *Cloud) Instances(ctx context.Context) ([]Instance, error) {
	return c.listInstances(ctx, instances.ListOpts{})
}

// Instance reads one. The API knows no path for it, only a filter.
func (c *Cloud) Instance(ctx context.Context, id string) (Instance, error) {
	if err := checkID("instance id", id); err != nil {
		return Instance{}, err
	}
	found, err := c.listInstances(ctx, instances.ListOpts{Id: id})
	if err != nil {
		return Instance{}, err
	}
	for _, i := range found {
		if i.ID == id {
			return i, nil
		}
	}
	return Instance{}, &Error{Service: string(serviceRDS), Operation: string(opListInstances), Status: http.StatusNotFound, Message: "no instance " + id}
}

func (c *Cloud) listInstances(ctx context.Context, opts instances.ListOpts) ([]Instance, error) {
	return everyPage(
		func(r instances.InstanceResponse) string { return r.Id }, instanceOf,
		func(offset int, _ string) ([]instances.InstanceResponse, int, error) {
			opts.Offset, opts.Limit = offset, PageSize
			page, err := instances.List(c.client(ctx, opListInstances), opts)
			if err != nil {
				return nil, 0, c.transport.wrapError(opListInstances, err)
			}
			return page.Instances, page.TotalCount, nil
		})
}

func instanceOf(r instances.InstanceResponse) Instance {
	i := Instance{
		ID: r.Id, Name: r.Name, Status: r.Status, Mode: strings.ToLower(r.Type),
		Engine: r.DataStore.Type, Version: r.DataStore.Version, Flavor: r.FlavorRef,
		VCPUs: number(r.Cpu), MemoryGB: number(r.Mem), VolumeGB: r.Volume.Size, VolumeType: r.Volume.Type,
	}
	for _, n := range r.Nodes {
		i.Nodes = append(i.Nodes, Node{ID: n.Id, Role: n.Role, Status: n.Status, Zone: n.AvailabilityZone})
	}
	for _, other := range r.RelatedInstance {
		switch other.Type {
		case "replica_of":
			i.ReplicaOf = other.Id
		case "replica":
			i.Replicas = append(i.Replicas, other.Id)
		}
	}
	return i
}

// number reads what the API sends as text; 0 if it is none.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// StoragePolicy is the cloud's own storage autoscaling of an instance (RDS api: querying_an_autoscaling_policy.rst).
type StoragePolicy struct {
	On             bool
	LimitGB        int // it enlarges up to this size
	TriggerPercent int // of free space, at or below which it enlarges; at 10 GB free it always does
}

// StoragePolicy reads the policy; ErrNotFound if there is no such instance, or the API has no such call.
func (c *Cloud) StoragePolicy(ctx context.Context, instanceID string) (StoragePolicy, error) {
	if err := checkID("instance id", instanceID); err != nil {
		return StoragePolicy{}, err
	}
	var reply struct {
		On             bool `json:"switch_option"`
		LimitGB        int  `json:"limit_size"`
		TriggerPercent int  `json:"trigger_threshold"`
	}
	if err := c.doRequest(ctx, opGetStoragePolicy, http.MethodGet, "instances/"+instanceID+"/disk-auto-expansion", nil, &reply); err != nil {
		return StoragePolicy{}, missing(err)
	}
	return StoragePolicy(reply), nil
}

// missing makes "not found" of the other answers of an API that lacks a call.
func missing(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented) {
		e.Status = http.StatusNotFound
	}
	return err
}
