// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// States of an instance in which it may change (RDS api: querying_db_instances.rst). In any other state the autopilot
// waits.
const (
	StatusActive      = "ACTIVE"
	StatusStorageFull = "STORAGE FULL"
)

// Instance is a database as the cloud reports it now.
type Instance struct {
	ID       string
	Name     string
	Status   string // as the cloud names it
	Engine   string // MySQL, PostgreSQL or SQLServer
	Version  string
	Mode     string // single, ha or replica
	Flavor   string // code
	VCPUs    int
	MemoryGB int
	VolumeGB int
	Zones    []string // of its nodes, without duplicates
	NodeIDs  []string
	Primary  string // the id of the primary node
	Replicas []Replica
}

// Replica is a read replica of an instance. In the cloud it is an instance of its own.
type Replica struct {
	ID, Name                  string
	VCPUs, MemoryGB, VolumeGB int
	IsManaged                 bool // an RdsAutopilot of its own is on
}

// DescribeUnknownInstance returns what is known about an id with which the cloud has no instance.
func (c Case) DescribeUnknownInstance() string {
	field := "status.id of the Rds"
	if c.NoRds {
		field = "spec.instanceID"
	}
	if c.NodeOf != "" {
		return "The id in " + field + " is that of a node. Use the id of its instance: " + c.NodeOf
	}
	return "The cloud has no instance with the id in " + field
}

// Observed returns the instance as it is stored in the status. ActiveSince stays the same as long as every check finds
// ACTIVE.
func (i Instance) Observed(last *v1alpha1.Instance, now time.Time) *v1alpha1.Instance {
	seen := &v1alpha1.Instance{
		ID: i.ID, Status: i.Status, VolumeGB: ClampInt32(i.VolumeGB), Flavor: i.Flavor,
		VCPUs: ClampInt32(i.VCPUs), MemoryGB: ClampInt32(i.MemoryGB), Zones: slices.Clone(i.Zones),
		NodeIDs: slices.Clone(i.NodeIDs),
	}
	if i.Status == StatusActive {
		seen.ActiveSince = Seconds(now)
		if last != nil && last.ID == i.ID && last.Status == StatusActive && last.ActiveSince != nil {
			seen.ActiveSince = last.ActiveSince
		}
	}
	return seen
}

// Measurable reports whether Cloud Eye has data of the instance. It has none before the instance is created.
func (i Instance) Measurable() bool { return i.Status == StatusActive || i.Status == StatusStorageFull }

// WithSizes returns the instance with vCPUs and memory from the catalogue, if the cloud does not report them.
func (i Instance) WithSizes(catalogue []flavors.Flavor) Instance {
	if f, ok := flavors.Find(catalogue, i.Flavor); ok && !i.SizesKnown() {
		i.VCPUs, i.MemoryGB = f.VCPUs, f.MemoryGB
	}
	return i
}

// WithKnownSizes returns the instance with the sizes that the last check stored, if the cloud does not report them: the
// volume, and for the same flavor vCPUs and memory.
func (i Instance) WithKnownSizes(last *v1alpha1.Instance) Instance {
	if last == nil || last.ID != i.ID {
		return i
	}
	if i.VolumeGB <= 0 {
		i.VolumeGB = int(last.VolumeGB)
	}
	if last.Flavor == i.Flavor && !i.SizesKnown() {
		i.VCPUs, i.MemoryGB = int(last.VCPUs), int(last.MemoryGB)
	}
	return i
}

// HasKnownEngine reports whether the autopilot knows the names of the engine's metrics in Cloud Eye.
func (i Instance) HasKnownEngine() bool {
	return slices.Contains([]string{"mysql", "postgresql", "sqlserver"}, strings.ToLower(i.Engine))
}

// SizesKnown reports whether the vCPUs and the memory of the instance are known.
func (i Instance) SizesKnown() bool { return i.VCPUs > 0 && i.MemoryGB > 0 }

// ClampInt32 returns a number of the cloud as it is stored in the status. A conversion without limits would turn a
// number that is out of range into another one.
func ClampInt32(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
