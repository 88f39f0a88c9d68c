// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// plan is everything that a seed determines: the databases, the settings of the cloud and of the service, and what people
// change. Nothing fails in it, because test/explore and the stories have the faults.
type plan struct {
	seed      uint64
	days      int
	watchLag  time.Duration
	rate      float64 // --cloud-rate
	sweep     time.Duration
	flavors   int // --max-flavor-changes
	settings  simcloud.Settings
	skew      time.Duration // of the service's clock against the cloud's
	spring    bool          // the run spans the beginning of summer time
	databases []databasePlan
	events    []event
}

// databasePlan is a database of a plan.
type databasePlan struct {
	name     string
	instance simcloud.Instance
	alone    bool // without an Rds: the service changes the instance in the cloud
	policy   map[string]any
	load     load
}

// event is a change of a database's policy at a time.
type event struct {
	at       time.Duration
	database int
	policy   map[string]any
}

// chooser draws from a seed.
type chooser struct{ *rand.Rand }

func (c chooser) chance(percent int) bool              { return c.IntN(100) < percent }
func (c chooser) between(low, high float64) float64    { return low + c.Float64()*(high-low) }
func (c chooser) atMost(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d))) }
func (c chooser) hours(low, high float64) time.Duration {
	return time.Duration(c.between(low, high) * float64(time.Hour))
}

// pick returns one of the values.
func pick[T any](c chooser, from ...T) T { return from[c.IntN(len(from))] }

// drawPlan returns the plan of a seed.
func drawPlan(seed uint64) plan {
	c := chooser{rand.New(rand.NewPCG(seed, 1))}
	databases := 3 + min(c.IntN(6), c.IntN(6))
	p := plan{
		seed: seed, days: 14 + c.IntN(max(1, 70/databases-13)), watchLag: pick(c, 20*time.Millisecond, 5*time.Second, 45*time.Second),
		rate: pick(c, 5.0, 50), sweep: pick[time.Duration](c, 5, 10, 20, 30) * time.Minute, flavors: 1 + int(seed%4/3),
		skew: []time.Duration{0, 0, 2, -2}[seed%4] * time.Minute, spring: seed%4 > 1,
	}
	if seed <= shortSeeds {
		p.days, databases = 10, 6
	}
	p.settings = simcloud.Settings{
		MetricDelay: pick[time.Duration](c, 0, 2, 5, 10) * time.Minute, HideStorageFull: c.chance(50), NoResizeList: c.chance(20),
		Odd: simcloud.Odd{NoUsedSpace: c.chance(10)}, NewRule: pick(c, "", simcloud.StateInsufficientData),
		RewrittenRule: pick(c, "", simcloud.StateOK), ReadOnlyStopsWrites: true, MinorVersions: c.chance(20),
		EnlargeDuration: pick[time.Duration](c, 2, 4, 8) * time.Minute, ResizeDuration: pick[time.Duration](c, 5, 10, 20) * time.Minute,
	}
	total := time.Duration(p.days) * day
	for i := range databases {
		p.databases = append(p.databases, c.database(i, total))
	}
	for range 2 + c.IntN(5) {
		amount := 0.9 * math.Exp2(c.between(0, 2.5)) // also for flavors that have grown
		p.addRush(c, time.Hour+c.atMost(total-time.Hour), func() time.Duration { return c.hours(0.5, 6) }, amount)
	}
	// Early, while every flavor may still grow, all need a larger one at once.
	p.addRush(c, 6*time.Hour+c.atMost(2*day), func() time.Duration { return 18 * time.Hour }, pick(c, 1.2, 2, 6))
	for range 2 + c.IntN(p.days) {
		i := c.IntN(databases)
		e := event{time.Hour + c.atMost(total-time.Hour), i, c.policy(p.databases[i].instance.VolumeGB)}
		if c.chance(40) {
			e.policy = map[string]any{"mode": pick(c, "Auto", "Auto", "Recommend", "Off")}
		}
		p.events = append(p.events, e)
	}
	slices.SortFunc(p.events, func(a, b event) int { return int(a.at - b.at) })
	return p
}

// addRush adds a shared cause that makes all databases busy for the time that lasts returns, and fills some.
func (p *plan) addRush(c chooser, from time.Duration, lasts func() time.Duration, amount float64) {
	percent := pick(c, 50, 50, 90) // a flavor that waits must not hold storage
	for i := range p.databases {
		l := &p.databases[i].load
		l.episodes = append(l.episodes, episode{from, from + lasts(), "cpu", amount})
		if at := from + c.atMost(4*time.Hour); c.chance(percent) {
			filled := float64(p.databases[i].instance.VolumeGB) * c.between(0.2, 0.6)
			l.episodes = append(l.episodes, episode{at, at + 2*tick, "jump", filled})
		}
	}
}

func (c chooser) database(i int, total time.Duration) databasePlan {
	flavor := pick(c, "rds.mysql.n1.large.2", "rds.mysql.n1.large.4", "rds.pg.n1.large.4", "rds.pg.n1.xlarge.4", "rds.mssql.n1.large.4", "rds.mysql.x1.large.4", "rds.pg.x1.large.2")
	if c.chance(30) {
		flavor += ".ha"
	}
	size := pick(c, 40, 50, 80, 100, 100, 200, 500, 1000, 2000)
	in := simcloud.Instance{Flavor: flavor, VolumeGB: size, Workload: simcloud.Workload{UsedGB: c.between(0.3, 0.85) * float64(size)}}
	return databasePlan{fmt.Sprintf("db-%d", i), in, c.chance(25), c.policy(size), c.load(float64(size), total)}
}

// policy draws a spec without apply and instanceID. It is a merge patch, so it sets or removes every field.
func (c chooser) policy(size int) map[string]any {
	var maxGB, window, vcpus any
	if c.chance(60) {
		maxGB = min(4000, (int(float64(size)*c.between(1, 1.7))/10+1)*10)
	}
	if c.chance(40) {
		window = map[string]any{"days": pick(c, []any{"Sat", "Sun"}, []any{"Mon", "Wed", "Fri"}), "start": pick(c, "01:00", "22:00"), "end": pick(c, "05:00", "06:30"), "timeZone": pick(c, "UTC", "Europe/Berlin")}
	}
	if c.chance(40) { // no flavor of the plan has fewer than 2
		vcpus = pick(c, 2, 4, 8, 16)
	}
	return map[string]any{
		"mode": pick(c, "Auto", "Auto", "Auto", "Auto", "Auto", "Auto", "Auto", "Auto", "Recommend", "Off"),
		"storage": map[string]any{
			"stepGB": pick(c, 10, 10, 10, 20, 50), "stepPercent": pick(c, any(nil), nil, nil, 5, 20), "maxGB": maxGB, "thresholdPercent": pick(c, 90, 90, 80, 70, 99),
			"alarm": map[string]any{"periodSeconds": pick(c, 1, 1, 300), "count": 1 + c.IntN(5), "repeatSeconds": pick(c, 0, 900, 3600)},
		},
		"flavor": map[string]any{
			"cpu": map[string]any{"enabled": c.chance(80), "thresholdPercent": pick(c, 90, 80, 70)}, "memory": map[string]any{"enabled": c.chance(80), "thresholdPercent": pick(c, 90, 80)},
			"alarm":    map[string]any{"periodSeconds": pick(c, 300, 300, 1, 1200), "count": 1 + c.IntN(3), "repeatSeconds": pick(c, 0, 1800)},
			"maxVCPUs": vcpus, "cooldownSeconds": pick(c, 0, 600, 3600, 6*3600), "maxChangesPerDay": 1 + c.IntN(3), "window": window,
		},
	}
}

// load is the load of a database over time.
type load struct {
	growth                float64 // GB an hour
	episodes              []episode
	cpu, cpuSwing, memory float64 // shares of the flavor at first
}

// episode is a time with more load, or with a clean-up.
type episode struct {
	from, to time.Duration
	what     string
	amount   float64
}

func (c chooser) load(size float64, total time.Duration) load {
	l := load{growth: size * pick(c, 0, 0.003, 0.02, 0.06) / 24, cpu: c.between(0.1, 0.6), cpuSwing: c.between(0, 0.35), memory: c.between(0.3, 0.75)}
	for range c.IntN(24) {
		from := c.atMost(total)
		what := pick(c, "import", "burst", "jump", "clean-up", "cpu", "cpu", "memory")
		e := episode{from: from, to: from + c.hours(0.2, 12), what: what}
		switch what {
		case "import":
			e.amount = size * c.between(0.005, 0.1) // GB an hour
		case "burst":
			e.to, e.amount = from+c.hours(0.1, 1.5), size*c.between(0.05, 0.3) // GB for that time
		case "jump":
			e.to, e.amount = from+2*tick, size*c.between(0.05, 0.3) // GB at once, by a restore
		case "clean-up":
			e.to, e.amount = from+2*tick, c.between(0.3, 0.9) // the share that stays
		case "cpu", "memory":
			e.amount = c.between(0.85, 2.5) // times the flavor at first
		}
		l.episodes = append(l.episodes, e)
	}
	return l
}

const tick = 2 * time.Minute // of the run

// next returns the load at a time. A read-only database writes nothing.
func (l load) next(at time.Duration, in simcloud.Instance, first simcloud.Instance, burst *float64) simcloud.Workload {
	w, most := in.Workload, in.Workload.UsedGB
	wave := l.cpuSwing * math.Sin(2*math.Pi*at.Hours()/24)
	w.CPUDemand, w.MemoryDemandGB = float64(first.VCPUs)*max(0, l.cpu+wave), l.memory*float64(first.MemoryGB)
	w.UsedGB += l.growth*tick.Hours() - *burst
	*burst = 0
	for _, e := range l.episodes {
		if at < e.from || at >= e.to {
			continue
		}
		switch e.what {
		case "import":
			w.UsedGB += e.amount * tick.Hours()
		case "burst":
			*burst += e.amount
		case "jump":
			if at < e.from+tick {
				w.UsedGB += e.amount
			}
		case "clean-up":
			if at < e.from+tick {
				w.UsedGB *= e.amount
			}
		case "cpu":
			w.CPUDemand = max(w.CPUDemand, e.amount*float64(first.VCPUs))
		case "memory":
			w.MemoryDemandGB = max(w.MemoryDemandGB, e.amount*float64(first.MemoryGB))
		}
	}
	w.UsedGB += *burst
	if limit := readOnlyAt(in.VolumeGB) + 0.1; w.UsedGB > limit { // the database is read-only there
		*burst = max(0, *burst-(w.UsedGB-limit))
		w.UsedGB = limit
	}
	if in.ReadOnly && w.UsedGB > most {
		w.UsedGB = most
	}
	return w
}
