// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/flavors"
	"golang.org/x/sync/singleflight"
)

const (
	flavorsFresh  = 5 * time.Minute  // younger: as good as new
	flavorsUsable = 10 * time.Minute // younger: given at once, while a new list is fetched
)

// Flavor is a size an instance can have (RDS api: querying_database_specifications.rst).
type Flavor struct {
	Code     string // such as rds.pg.n1.large.4.ha
	Engine   string // as asked for
	Versions []string
	Mode     string // single, ha or replica
	VCPUs    int
	MemoryGB int
	Group    string            // general, dedicated or normal
	Zones    map[string]string // zone → normal, unsupported, sellout or abandon
}

// Flavors lists the catalogue of an engine and version. It asks the cloud at most once at a time and every five minutes;
// while the cloud fails, the last list is given, however old. Callers must not alter it.
func (c *Cloud) Flavors(ctx context.Context, engine, version string) ([]Flavor, error) {
	if err := checkID("engine", engine); err != nil {
		return nil, err
	}
	return c.flavors.get(ctx, strings.ToLower(engine)+" "+version, func(ctx context.Context) ([]Flavor, error) {
		rows, err := flavors.ListFlavors(c.client(ctx, opListFlavors), flavors.ListOpts{DatabaseName: engine, VersionName: version})
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
	})
}

// ResizeTargets reads the codes that the cloud would let this instance change to, whatever the catalogue says. ErrNotFound
// where the API lacks it. Not in the SDK (RDS api: querying_available_instance_classes_for_a_db_instance.rst).
func (c *Cloud) ResizeTargets(ctx context.Context, instanceID string) ([]string, error) {
	if err := checkID("instance id", instanceID); err != nil {
		return nil, err
	}
	var reply struct {
		Groups []struct {
			Flavors []struct {
				Code string `json:"code"`
			} `json:"compute_flavors"`
		} `json:"flavor_groups"`
	}
	if err := c.doRequest(ctx, opListResizeTargets, http.MethodGet, "instances/"+instanceID+"/flavors-resize", nil, &reply); err != nil {
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

// flavorCache keeps the last list of each key.
type flavorCache struct {
	now   func() time.Time
	group singleflight.Group

	mu    sync.Mutex
	lists map[string]flavorList
}

type flavorList struct {
	flavors []Flavor
	read    time.Time
}

func newFlavorCache(now func() time.Time) *flavorCache {
	return &flavorCache{now: now, lists: map[string]flavorList{}}
}

func (f *flavorCache) get(ctx context.Context, key string, fetch func(context.Context) ([]Flavor, error)) ([]Flavor, error) {
	f.mu.Lock()
	list, known := f.lists[key]
	f.mu.Unlock()
	age := f.now().Sub(list.read)
	if known && age < flavorsFresh {
		return list.flavors, nil
	}
	done := f.group.DoChan(key, func() (any, error) {
		// Others may wait as well: the request must not end with the first caller. It ends by itself, as every call does.
		fresh, err := fetch(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lists[key] = flavorList{flavors: fresh, read: f.now()}
		return fresh, nil
	})
	if known && age < flavorsUsable {
		return list.flavors, nil
	}
	select {
	case <-ctx.Done():
		if known {
			return list.flavors, nil
		}
		return nil, ctx.Err()
	case r := <-done:
		fresh, ok := r.Val.([]Flavor)
		switch {
		case r.Err == nil && ok:
			return fresh, nil
		case known:
			return list.flavors, nil
		}
		return nil, r.Err
	}
}
