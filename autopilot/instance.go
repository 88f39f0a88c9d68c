// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// States of an instance that decide something (RDS api: querying_db_instances.rst). Any other one means wait.
const (
	StatusActive      = "ACTIVE"
	StatusStorageFull = "STORAGE FULL"
)

// Instance is a database as the cloud has it now.
type Instance struct {
	ID       string
	Name     string
	Status   string // the cloud's word
	Engine   string // MySQL, PostgreSQL or SQLServer
	Version  string
	Mode     string // single, ha or replica
	Flavor   string // code
	VCPUs    int
	MemoryGB int
	VolumeGB int
	Zones    []string // of its nodes, each once
	NodeIDs  []string
	Primary  string // the primary node's id
	Replicas []Replica
}

// Replica is a read replica of an instance: an instance of its own.
type Replica struct {
	ID, Name        string
	VCPUs, MemoryGB int
}

// observed is the instance as it goes into the status. ActiveSince goes on as long as the status was ACTIVE each time.
func (i Instance) observed(last *v1alpha1.Instance, now time.Time) *v1alpha1.Instance {
	seen := &v1alpha1.Instance{
		ID: i.ID, Status: i.Status, VolumeGB: ClampInt32(i.VolumeGB), Flavor: i.Flavor,
		VCPUs: ClampInt32(i.VCPUs), MemoryGB: ClampInt32(i.MemoryGB), Zones: slices.Clone(i.Zones), NodeIDs: slices.Clone(i.NodeIDs),
		Primary: i.Primary,
	}
	if i.Status == StatusActive {
		seen.ActiveSince = seconds(now)
		if last != nil && last.ID == i.ID && last.Status == StatusActive && last.ActiveSince != nil {
			seen.ActiveSince = last.ActiveSince
		}
	}
	return seen
}

// Measurable reports whether Cloud Eye has data of the instance: not before it was made, but also while its disk is full.
func (i Instance) Measurable() bool { return i.Status == StatusActive || i.Status == StatusStorageFull }

// WithSizes fills in from the catalogue how many vCPUs and GB of memory the instance has, where the cloud does not say.
func (i Instance) WithSizes(catalogue []flavors.Flavor) Instance {
	if f, ok := flavors.Find(catalogue, i.Flavor); ok && !i.SizesKnown() {
		i.VCPUs, i.MemoryGB = f.VCPUs, f.MemoryGB
	}
	return i
}

// SizesKnown reports whether it is known how many vCPUs and GB of memory the instance has.
func (i Instance) SizesKnown() bool { return i.VCPUs > 0 && i.MemoryGB > 0 }

// ClampInt32 is a number of the cloud's as it goes into the status; one out of all bounds must not come out as another.
func ClampInt32(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
