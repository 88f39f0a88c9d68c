// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"math"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// weekDatabase is a database with what it has to bear in the week, and what is expected of it.
type weekDatabase struct {
	name, about string
	start       simcloud.Instance
	policy      func(*v1alpha1.Spec) // nil: the defaults, in an RdsAutopilot that the controller makes
	load        weekLoad
	deaf        int // percent of its messages that are lost

	quiet    bool // nothing is to be done, or said
	readOnly bool // the cap or the alarm's delay do not allow to keep it from that
}

// weekLoad is what a database bears from a time on, after Monday 00:00. It is asked once a minute.
type weekLoad func(at time.Duration, in simcloud.Instance) simcloud.Workload

const (
	day      = 24 * time.Hour
	twoVCPUs = "rds.mysql.n1.large.4" // 2 vCPUs, 8 GB
)

// part of a week: days count from Monday, which is 0.
func on(weekday int, hour float64) time.Duration {
	return time.Duration(weekday)*day + time.Duration(hour*float64(time.Hour))
}

func within(at, from, to time.Duration) bool { return at >= from && at < to }

// daily is within these hours of every day.
func daily(at time.Duration, from, to float64) bool { return within(at%day, on(0, from), on(0, to)) }

// breathing is a light load that goes up and down with the day.
func breathing(at time.Duration, in simcloud.Instance) simcloud.Workload {
	wave := math.Sin(2 * math.Pi * at.Hours() / 24)
	return simcloud.Workload{UsedGB: in.Workload.UsedGB, CPUDemand: float64(in.VCPUs) * (0.35 + 0.1*wave), MemoryDemandGB: 0.6 * float64(in.MemoryGB)}
}

// growing adds storage at a rate of GB an hour while it is on.
func growing(perHour float64, when func(at time.Duration) bool) weekLoad {
	return func(at time.Duration, in simcloud.Instance) simcloud.Workload {
		w := breathing(at, in)
		if at >= 0 && when(at) {
			w.UsedGB += perHour / 60
		}
		return w
	}
}

func always(time.Duration) bool { return true }

// busy wants that many vCPUs while it is on, and little else.
func busy(vcpus func(at time.Duration) float64) weekLoad {
	return func(at time.Duration, in simcloud.Instance) simcloud.Workload {
		w := breathing(at, in)
		w.CPUDemand = 0.6
		if v := vcpus(at); at >= 0 && v > 0 {
			w.CPUDemand = v
		}
		return w
	}
}

func atNoon(vcpus float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		if daily(at, 12, 13) {
			return vcpus
		}
		return 0
	}
}

// refilling memory is full again three hours after each change of flavor, however much there is: a cache.
func refilling() weekLoad {
	var have int
	var since time.Duration
	return func(at time.Duration, in simcloud.Instance) simcloud.Workload {
		if in.MemoryGB != have {
			have, since = in.MemoryGB, at
		}
		w := breathing(at, in)
		w.MemoryDemandGB = float64(have) * min(0.96, 0.54+0.14*(at-since).Hours())
		return w
	}
}

func instance(flavor string, volumeGB int, usedGB float64) simcloud.Instance {
	return simcloud.Instance{Flavor: flavor, VolumeGB: volumeGB, Workload: simcloud.Workload{UsedGB: usedGB}}
}

// weekDatabases are new ones at each call: some loads remember.
func weekDatabases() []weekDatabase {
	return []weekDatabase{
		{name: "steady", about: "grows by 6 GB a day", start: instance(twoVCPUs, 100, 82), load: growing(0.25, always)},
		{
			name: "steady-ha", about: "grows by 60 GB a day, in steps of 50 GB", start: instance("rds.pg.n1.xlarge.4.ha", 500, 430),
			policy: func(s *v1alpha1.Spec) { s.Storage.StepGB = 50 }, load: growing(2.5, always),
		},
		{
			name: "large", about: "grows by 3 GB an hour in office hours, over 1,000 GB and up to a cap of 1,100 GB", start: instance("rds.mssql.x1.2xlarge.4.ha", 980, 800),
			policy: func(s *v1alpha1.Spec) { s.Storage.MaxGB = 1100 },
			load:   growing(3, func(at time.Duration) bool { return daily(at, 8, 18) }),
		},
		{
			name: "import", about: "imports 8 GB/h from Tuesday 09:00, for 20 hours", start: instance("rds.pg.n1.large.4.ha", 100, 60),
			load: growing(8, func(at time.Duration) bool { return within(at, on(1, 9), on(2, 5)) }),
		},
		{
			name: "import-small", about: "imports 8 GB/h into 40 GB from Thursday 01:00, for 12 hours; the process restarts meanwhile", start: instance(twoVCPUs, 40, 12),
			load: growing(8, func(at time.Duration) bool { return within(at, on(3, 1), on(3, 13)) }),
		},
		{
			name: "import-deaf", about: "imports 8 GB/h from Wednesday 20:00, for 10 hours; every message is lost", start: instance("rds.mssql.n1.large.4", 60, 30),
			load: growing(8, func(at time.Duration) bool { return within(at, on(2, 20), on(3, 6)) }), deaf: 100,
		},
		{
			name: "bursty", about: "needs 27 GB for an hour each night, and frees them; half of the messages are lost", start: instance("rds.mssql.x1.large.4", 100, 66), deaf: 50,
			load: func(at time.Duration, in simcloud.Instance) simcloud.Workload {
				w := breathing(at, in)
				w.UsedGB = 66
				if at > 0 && daily(at, 2, 3) {
					w.UsedGB += min(27, (at%day - 2*time.Hour).Minutes()) // 1 GB a minute
				}
				return w
			},
		},
		{
			name: "runaway", about: "writes 2 GB/h from Wednesday 06:00 without end; maxGB is 80", start: instance(twoVCPUs, 40, 20),
			policy: func(s *v1alpha1.Spec) { s.Storage.MaxGB = 80 }, readOnly: true,
			load: growing(2, func(at time.Duration) bool { return at >= on(2, 6) }),
		},
		{
			name: "flood", about: "writes 2 GB a minute on Friday 10:00, faster than any alarm; people clean up at 14:00", start: instance("rds.pg.x1.large.4", 100, 50), readOnly: true,
			load: func(at time.Duration, in simcloud.Instance) simcloud.Workload {
				w := breathing(at, in)
				switch {
				case within(at, on(4, 10), on(4, 10.5)):
					w.UsedGB += 2
				case within(at, on(4, 14), on(4, 14)+time.Minute):
					w.UsedGB = 50
				}
				return w
			},
		},
		{
			name: "flapping", about: "storage goes up and down about the threshold: 88.5 to 90.5 GB of 100 within 40 minutes, from Monday 09:00 on", start: instance(twoVCPUs, 100, 86),
			load: func(at time.Duration, in simcloud.Instance) simcloud.Workload {
				w := breathing(at, in)
				w.UsedGB = 86
				if at >= on(0, 9) {
					w.UsedGB = 89.5 + math.Sin(2*math.Pi*at.Minutes()/40)
				}
				return w
			},
		},
		{name: "noon", about: "wants 1.94 of 2 vCPUs from 12:00 to 13:00, every day", start: instance("rds.mysql.x1.large.4", 100, 40), load: busy(atNoon(1.94))},
		{
			name: "noon-growing", about: "the same, and 60 % more each day", start: instance("rds.pg.x1.large.4", 100, 40),
			load: busy(func(at time.Duration) float64 { return atNoon(1.94 * math.Pow(1.6, math.Floor(at.Hours()/24)))(at) }),
		},
		{
			name: "noon-weekend", about: "1.94 of 2 vCPUs at noon; flavors change Sat and Sun from 01:00 to 05:00 in Berlin", start: instance("rds.mssql.n1.large.2", 100, 40),
			policy: func(s *v1alpha1.Spec) {
				s.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{"Sat", "Sun"}, Start: "01:00", End: "05:00", TimeZone: "Europe/Berlin"}
			},
			load: busy(atNoon(1.94)),
		},
		{
			name: "near-cap", about: "wants 16 vCPUs from Tuesday 07:00 on; maxVCPUs is 4", start: instance(twoVCPUs+".ha", 100, 40),
			policy: func(s *v1alpha1.Spec) { s.Flavor.MaxVCPUs = new(int32(4)) },
			load: busy(func(at time.Duration) float64 {
				if at >= on(1, 7) {
					return 16
				}
				return 0
			}),
		},
		{
			name: "refilling", about: "memory is full again three hours after each change", start: instance("rds.mysql.x1.large.2", 100, 40),
			policy: func(s *v1alpha1.Spec) { s.Flavor.MaxMemoryGB = new(int32(256)) }, load: refilling(),
		},
		{
			name: "replicated", about: "wants 1.9 of 2 vCPUs from 14:00 to 16:00; its read replica is as small, until people enlarge it on Thursday 18:00",
			start: instance("rds.pg.n1.large.4", 100, 40),
			load: busy(func(at time.Duration) float64 {
				if daily(at, 14, 16) {
					return 1.9
				}
				return 0
			}),
		},
		{
			name: "everything", about: "storage, CPU and memory are short from Tuesday 08:00 on", start: instance("rds.mssql.x1.large.2.ha", 50, 30),
			load: func(at time.Duration, in simcloud.Instance) simcloud.Workload {
				w := breathing(at, in)
				w.CPUDemand, w.MemoryDemandGB = 0.6, 2
				if at >= on(1, 8) {
					w.UsedGB, w.CPUDemand, w.MemoryDemandGB = 42, 1.95, 3.9
				}
				return w
			},
		},
		{
			name: "advised", about: "mode Recommend: storage over the threshold from Monday 10:00, CPU at noon", start: instance(twoVCPUs, 100, 89),
			policy: func(s *v1alpha1.Spec) { s.Mode = v1alpha1.ModeRecommend },
			load: func(at time.Duration, in simcloud.Instance) simcloud.Workload {
				w := busy(atNoon(1.94))(at, in)
				if at >= on(0, 10) {
					w.UsedGB = 91
				}
				return w
			},
		},
		{name: "quiet", about: "breathes with the day", start: instance(twoVCPUs, 100, 50), load: breathing, quiet: true},
		{
			name: "quiet-near", about: "stays just below: 88 % storage, 85 % CPU and memory, CPU at 100 % for 9 minutes of each hour", start: instance("rds.pg.n1.large.2.ha", 200, 176), quiet: true,
			load: func(at time.Duration, in simcloud.Instance) simcloud.Workload {
				w := simcloud.Workload{UsedGB: 176, CPUDemand: 1.7, MemoryDemandGB: 3.4}
				if at > 0 && at%time.Hour < 9*time.Minute {
					w.CPUDemand = 2
				}
				return w
			},
		},
	}
}
