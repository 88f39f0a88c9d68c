// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// plan is a database of the sandbox: what it is, what it will have to bear, and what is expected to come of that.
type plan struct {
	world.Database
	title  string
	metric v1alpha1.Metric
	load   simcloud.Workload

	volumeGB int
	flavor   string
}

func (p plan) String() string {
	return fmt.Sprintf("%s in %s, %d GB, %s", p.title, strings.Join(p.Zones, " and "), p.VolumeGB, p.Flavor)
}

// created is the Rds as it is written first.
func (p plan) created() *otcv1.Rds {
	r := &otcv1.Rds{Spec: otcv1.Spec{VolumeSize: autopilot.ClampInt32(p.VolumeGB), FlavorRef: p.Flavor}}
	if p.Autopilot {
		r.Spec.Autopilot = &p.Autopilot
	}
	return r
}

// plans are three databases that run out of one thing each.
func plans() []plan {
	return []plan{
		{
			Database: world.Database{
				Name: "orders", Flavor: "rds.mysql.n1.large.2", VolumeGB: 40, Zones: []string{"eu-de-01"}, Autopilot: true,
				Workload: simcloud.Workload{UsedGB: 24, CPUDemand: 0.5, MemoryDemandGB: 1.5},
			},
			title: "MySQL single", metric: v1alpha1.MetricStorage,
			load:     simcloud.Workload{UsedGB: 34, CPUDemand: 0.5, MemoryDemandGB: 1.5},
			volumeGB: 50, flavor: "rds.mysql.n1.large.2",
		},
		{
			Database: world.Database{
				Name: "shop", Flavor: "rds.mysql.x1.2xlarge.2.ha", VolumeGB: 100, Zones: []string{"eu-de-01", "eu-de-02"}, Autopilot: true,
				Workload: simcloud.Workload{UsedGB: 30, CPUDemand: 2, MemoryDemandGB: 8},
			},
			title: "MySQL Ha", metric: v1alpha1.MetricCPU,
			load:     simcloud.Workload{UsedGB: 30, CPUDemand: 7.68, MemoryDemandGB: 8},
			volumeGB: 100, flavor: "rds.mysql.x1.4xlarge.2.ha",
		},
		{
			Database: world.Database{
				Name: "reports", Flavor: "rds.pg.n1.large.2", VolumeGB: 60, Zones: []string{"eu-de-02"}, Autopilot: true,
				Workload: simcloud.Workload{UsedGB: 20, CPUDemand: 0.5, MemoryDemandGB: 1.6},
			},
			title: "PostgreSQL single", metric: v1alpha1.MetricMemory,
			load:     simcloud.Workload{UsedGB: 20, CPUDemand: 0.5, MemoryDemandGB: 3.84},
			volumeGB: 60, flavor: "rds.pg.n1.large.4",
		},
	}
}

// used is how much of an instance a workload takes of one thing, in percent.
func used(metric v1alpha1.Metric, load simcloud.Workload, in simcloud.Instance) float64 {
	switch metric {
	case v1alpha1.MetricCPU:
		return 100 * load.CPUDemand / float64(in.VCPUs)
	case v1alpha1.MetricMemory:
		return 100 * load.MemoryDemandGB / float64(in.MemoryGB)
	}
	return 100 * load.UsedGB / float64(in.VolumeGB)
}
