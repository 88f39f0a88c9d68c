// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Statuses of an instance. RDS api: querying_db_instances.rst; STORAGE FULL from the umn.
const (
	StatusActive      = "ACTIVE"
	StatusModifying   = "MODIFYING"
	StatusStorageFull = "STORAGE FULL"
)

// Workload is the load of an instance in absolute numbers. The utilization in percent follows from its size.
type Workload struct {
	UsedGB         float64
	CPUDemand      float64 // vCPUs kept busy
	MemoryDemandGB float64
	// Metrics holds the engine's other metrics by Cloud Eye's name. A missing metric has no data. The simulation keeps the
	// map, so a caller must replace it and never modify it.
	Metrics map[string]float64
}

// Node is one node of an instance.
type Node struct {
	ID, Name string
	Role     string // master, slave or readreplica
	Zone     string
}

// Instance is an RDS instance.
type Instance struct {
	ID, Name string
	// Status is the status as set. The API lists STORAGE FULL in place of ACTIVE when ReadOnly, and MODIFYING while a job
	// runs.
	Status  string
	Engine  string // MySQL, PostgreSQL or SQLServer
	Version string
	Type    string // Single, Ha or Replica
	Flavor  string // with the suffix of the mode
	// VCPUs and MemoryGB follow from Flavor.
	VCPUs, MemoryGB int
	VolumeType      string
	VolumeGB        int
	Nodes           []Node
	// ReplicaOf is the id of the primary of a read replica.
	ReplicaOf string
	Created   time.Time
	Workload  Workload
	// ReadOnly: the storage is full. RDS umn: scaling_up_storage_space.rst.
	ReadOnly bool
	// Omits are fields that the list of instances leaves out: cpu, mem, size (of the volume), or any other of the first
	// level. The simulation still knows the values.
	Omits []string
	// SeriesFaults are the faults of its datapoints by Cloud Eye's name of the metric. The empty name stands for all
	// others. The simulation keeps the map, so a caller must replace it and never modify it.
	SeriesFaults map[string]SeriesFault
	// OthersFirst are changes of somebody else. The first starts just before the next action on the instance, which is
	// then refused as busy. The second starts before the next action after its end, and so on.
	OthersFirst []OthersChange
	// FailingJobs is the number of its next jobs that end as Failed, without effect.
	FailingJobs int
}

type instance struct {
	Instance
	samples []sample
	busy    bool // a job is running
}

// sample is the raw data of one interval.
type sample struct {
	tick                            int64
	usedGB, totalGB, cpuPct, memPct float64
	metrics                         map[string]float64
}

func (in *instance) sample(tick int64) {
	used := min(in.Workload.UsedGB, float64(in.VolumeGB))
	if len(in.samples) >= 2*keepSamples {
		in.samples = slices.Clone(in.samples[len(in.samples)-keepSamples:])
	}
	in.samples = append(in.samples, sample{
		tick: tick, usedGB: used, totalGB: float64(in.VolumeGB),
		cpuPct:  min(100*in.Workload.CPUDemand/float64(in.VCPUs), 100),
		memPct:  min(100*in.Workload.MemoryDemandGB/float64(in.MemoryGB), 100),
		metrics: in.Workload.Metrics,
	})
}

// AddInstance adds an active instance. Flavor and VolumeGB are mandatory. It sets the other fields if they are empty:
// engine and type from the flavor's code, the newest version, one node in eu-de-01 (for Ha a second one in eu-de-02),
// and new ids, also of the given nodes.
func (c *Cloud) AddInstance(in Instance) (Instance, error) {
	now := c.lock()
	defer c.mu.Unlock()
	if in.Created.IsZero() {
		in.Created = now
	}
	added, err := c.addInstance(in)
	if err != nil {
		return Instance{}, err
	}
	return added.snapshot(), nil
}

func (c *Cloud) addInstance(in Instance) (*instance, error) {
	f, mode := c.flavor(in.Flavor)
	if f == nil {
		return nil, fmt.Errorf("add instance: no flavor %q", in.Flavor)
	}
	if in.VolumeGB < 40 || in.VolumeGB > 4000 || in.VolumeGB%10 != 0 {
		return nil, fmt.Errorf("add instance: %d GB is not a multiple of 10 from 40 to 4000", in.VolumeGB)
	}
	versions := f.versions(mode)
	suffix := map[string]string{"MySQL": "01", "PostgreSQL": "03", "SQLServer": "04"}[f.Engine]
	fill := func(p *string, v string) { *p = cmp.Or(*p, v) }
	fill(&in.ID, hexID(32)+"in"+suffix)
	fill(&in.Name, "rds-"+hexID(4))
	fill(&in.Status, StatusActive)
	fill(&in.Engine, f.Engine)
	fill(&in.Version, versions[len(versions)-1])
	fill(&in.Type, map[string]string{"single": "Single", "ha": "Ha", "replica": "Replica"}[mode])
	fill(&in.VolumeType, "CLOUDSSD")
	in.Nodes = slices.Clone(in.Nodes)
	if len(in.Nodes) == 0 {
		role := map[bool]string{true: "readreplica", false: "master"}[in.Type == "Replica"]
		in.Nodes = []Node{{Role: role, Zone: c.Zones()[0]}}
		if in.Type == "Ha" {
			in.Nodes = append(in.Nodes, Node{Role: "slave", Zone: c.Zones()[1]})
		}
	}
	for i := range in.Nodes {
		fill(&in.Nodes[i].ID, hexID(32)+"no"+suffix)
		fill(&in.Nodes[i].Name, fmt.Sprintf("%s_node%d", in.Name, i))
	}
	added := &instance{Instance: in}
	c.resized(added)
	c.updateFull(added)
	c.instances = append(c.instances, added)
	return added, nil
}

// resized sets vCPUs and memory from the flavor.
func (c *Cloud) resized(in *instance) {
	if f, _ := c.flavor(in.Flavor); f != nil {
		in.VCPUs, in.MemoryGB = f.VCPUs, f.RAM
	}
}

func (in *instance) snapshot() Instance {
	out := in.Instance
	out.Nodes = slices.Clone(in.Nodes)
	return out
}

func (c *Cloud) instance(id string) *instance {
	return find(c.instances, func(in *instance) bool { return in.ID == id })
}

// Zones returns the availability zones of the region.
func (c *Cloud) Zones() []string {
	return []string{c.opts.Region + "-01", c.opts.Region + "-02", c.opts.Region + "-03"}
}

// Instance returns an instance as it is now, with the status that the API lists. It returns false if there is none.
func (c *Cloud) Instance(id string) (Instance, bool) {
	c.lock()
	defer c.mu.Unlock()
	in := c.instance(id)
	if in == nil {
		return Instance{}, false
	}
	out := in.snapshot()
	out.Status = c.status(in)
	return out, true
}

// ChangeInstance changes an instance without the API, for what the API does not offer: a status, a failover, a flavor
// that is rolled back. It ignores jobs and checks.
func (c *Cloud) ChangeInstance(id string, change func(*Instance)) error {
	c.lock()
	defer c.mu.Unlock()
	in := c.instance(id)
	if in == nil {
		return fmt.Errorf("change instance: no instance %s", id)
	}
	usedGB := in.Workload.UsedGB
	change(&in.Instance)
	c.resized(in)
	c.stopWrites(in, usedGB)
	c.updateFull(in)
	return nil
}

// SetWorkload changes the workload from now on.
func (c *Cloud) SetWorkload(id string, w Workload) error {
	return c.ChangeInstance(id, func(in *Instance) { in.Workload = w })
}

// RemoveInstance deletes an instance. Its alarm rules stay. RDS umn: viewing_monitoring_metrics.rst.
func (c *Cloud) RemoveInstance(id string) {
	c.lock()
	defer c.mu.Unlock()
	remove(&c.jobs, func(j *job) bool { return j.Instance == id })
	remove(&c.instances, func(in *instance) bool { return in.ID == id })
}

func (c *Cloud) status(in *instance) string {
	switch {
	case in.busy:
		return StatusModifying
	case in.Status == StatusActive && in.ReadOnly && !c.settings.HideStorageFull:
		return StatusStorageFull
	}
	return in.Status
}
