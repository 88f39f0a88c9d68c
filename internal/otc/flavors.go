// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"
	"strings"
	"time"

	sdk "github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/flavors"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
)

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
	if err := c.doRequest(ctx, opListResizeTargets, http.MethodGet, "instances/"+inst.ID+"/flavors-resize", nil, &reply,
		inst.ID); err != nil {
		return nil, refusal(missing(err))
	}
	codes = []string{}
	for _, g := range reply.Groups {
		for _, f := range g.Flavors {
			codes = append(codes, f.Code)
		}
	}
	return codes, nil
}
