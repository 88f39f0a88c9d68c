// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/flavors"
)

// Flavor is an instance class (RDS api: querying_database_specifications.rst).
type Flavor struct {
	Code     string // such as rds.pg.n1.large.4.ha
	Engine   string // as requested
	Versions []string
	Mode     string // single, ha or replica
	VCPUs    int
	MemoryGB int
	Group    string            // general, dedicated or normal
	Zones    map[string]string // zone → normal, unsupported, sellout or abandon
}

// Flavors lists the catalogue of an engine and version; an empty version means all.
func (c *Cloud) Flavors(ctx context.Context, engine, version string) ([]Flavor, error) {
	rows, err := flavors.ListFlavors(c.client(ctx, opListFlavors, engine),
		flavors.ListOpts{DatabaseName: engine, VersionName: version})
	if err != nil {
		return nil, c.transport.wrapError(opListFlavors, err)
	}
	list := make([]Flavor, 0, len(rows))
	for _, r := range rows {
		list = append(list, Flavor{
			Code: r.SpecCode, Engine: engine, Versions: r.VersionName, Mode: r.InstanceMode,
			VCPUs: number(r.VCPUs), MemoryGB: r.RAM, Group: r.GroupType, Zones: r.AzStatus,
		})
	}
	return list, nil
}

// ResizeTargets returns the flavor codes that the cloud offers for this instance. The error wraps ErrNotFound if the
// cloud has no such API. The SDK lacks the call (RDS api: querying_available_instance_classes_for_a_db_instance.rst).
func (c *Cloud) ResizeTargets(ctx context.Context, instanceID string) ([]string, error) {
	var reply struct {
		Groups []struct {
			Flavors []struct {
				Code string `json:"code"`
			} `json:"compute_flavors"`
		} `json:"flavor_groups"`
	}
	if err := c.doRequest(ctx, opListResizeTargets, http.MethodGet, "instances/"+instanceID+"/flavors-resize", nil, &reply,
		instanceID); err != nil {
		return nil, missing(err)
	}
	codes := []string{}
	for _, g := range reply.Groups {
		for _, f := range g.Flavors {
			codes = append(codes, f.Code)
		}
	}
	return codes, nil
}
