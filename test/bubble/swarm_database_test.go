// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// database is one database with everything that the oracle knows of it.
type database struct {
	w             *swarm
	name          string
	databasePlan  databasePlan
	id, replicaID string
	first         simcloud.Instance
	burst         float64

	fullFor   time.Duration // how long it has been read-only
	limitSeen time.Duration // how long the service could measure that it is read-only

	mu            sync.Mutex
	sample        []sample   // newest last
	policies      []policyAt // newest last
	switched      string     // spec.autopilot of the Rds: true, false or absent
	hasRds        bool
	refusedAt     time.Time // when the cloud last refused its operator, or a job of its failed
	failing       int       // jobs that are still to fail
	noOperator    time.Time // until then, the operator does not apply its Rds
	faultsEnd     time.Time // until then, a series of its is faulty
	specGB        int       // the size in the Rds
	specFlavor    string    // the flavor in the Rds
	rdsGB         int       // the size that the last person, or the operator, wrote into the Rds
	growths       []growthMade
	resizes       []time.Time       // requests of another flavor
	resizing      string            // the flavor that the service has requested and the cloud does not have yet
	ours          string            // the flavor that it last requested
	intents       []openChange      // as stored
	requests      []flavorRequest   // flavors that the service has requested of the cloud
	starts        []time.Time       // when the cloud began them
	jobsSeen      int               // jobs of the instance that were attributed
	peoplesFlavor string            // the flavor in the Rds, if somebody else wrote it
	revertedAt    time.Time         // when somebody replaced the flavor of the service in the Rds by a smaller one, within its day
	peopled       time.Time         // when people last changed its size or flavor
	touched       time.Time         // until then, the oracle excuses delays, because of what people did
	resets        time.Time         // until then, an admission policy reverts patches of the Rds
	capFrom       simcloud.Instance // at the first arming
	base          *v1alpha1.Baseline

	readOnlyFor time.Duration // calm time in which it was read-only and might have grown
	reported    map[string]bool
}

// flavorRequest is a flavor that the service has requested of the cloud.
type flavorRequest struct {
	at   time.Time
	code string
}

// sample is the state of a database at a time.
type sample struct {
	at          time.Time
	sizeGB      int
	usedGB      float64
	cpu, memory float64 // percent
	flavor      string
	readOnly    bool
	// seemsReadOnly means that the database is read-only, or was and the service has no measurement that shows it writable.
	seemsReadOnly bool
}

// policyAt is a policy and the time from which it was in force.
type policyAt struct {
	at   time.Time
	spec v1alpha1.Spec
	on   bool
}

func (w *swarm) addDatabase(p databasePlan) {
	d := &database{w: w, name: p.name, databasePlan: p, reported: map[string]bool{}}
	p.instance.Name = p.name
	if p.sizeless {
		p.instance.Omits = []string{"size"}
	}
	in, err := w.sim.AddInstance(p.instance)
	w.must(err)
	d.first, d.id = in, in.ID
	if p.sizeless {
		d.touch(3 * time.Hour)
		time.AfterFunc(2*time.Hour, func() { _ = w.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) { in.Omits = nil }) })
	}
	if p.replica {
		r := simcloud.Instance{Name: p.name + "-read", Flavor: strings.TrimSuffix(in.Flavor, ".ha") + ".rr", VolumeGB: in.VolumeGB, ReplicaOf: in.ID, Workload: simcloud.Workload{UsedGB: 10}}
		r, err := w.sim.AddInstance(r)
		w.must(err)
		d.replicaID = r.ID
	}
	w.databases = append(w.databases, d) // before its first write, which admit judges
	d.createAutopilot(p.policy)
	if p.apply != "Alone" {
		w.createRds(swarmNamespace, p.name, rdsSpec(in, true), in.ID)
		d.dropSwitch()
	}
	w.logf(d.name, "%s, version %s, %d GB, %.1f GB used, apply %s, policy %s", in.Flavor, in.Version, in.VolumeGB, in.Workload.UsedGB, p.apply, text(p.policy))
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (d *database) instance() simcloud.Instance {
	in, _ := d.w.sim.Instance(d.id)
	return in
}

func (d *database) createAutopilot(policy map[string]any) {
	spec := withoutNulls(policy)
	spec["apply"] = d.databasePlan.apply
	if d.databasePlan.apply == "Alone" {
		spec["apply"], spec["instanceID"] = "Cloud", d.id
	}
	d.w.createAutopilot(swarmNamespace, d.name, text(spec))
}

// setSwitch sets spec.autopilot.
func (d *database) setSwitch(on bool) {
	d.patchRds(map[string]any{"spec": map[string]any{"autopilot": on}})
	d.dropSwitch()
}

// dropSwitch removes spec.autopilot within a second, if the operator of the plan does so.
func (d *database) dropSwitch() {
	if d.databasePlan.drops {
		d.w.later(time.Duration(1+d.w.draw(d.name, "drops")*9)*time.Millisecond, func() {
			d.patchRds(map[string]any{"spec": map[string]any{"autopilot": nil}})
		})
	}
}

// patchRds patches the Rds as a person does, if the database has one.
func (d *database) patchRds(patch map[string]any) {
	if d.databasePlan.apply != "Alone" {
		d.w.patch(d.w.rdss(swarmNamespace), d.name, text(patch))
	}
}

func (d *database) patchPolicy(policy map[string]any) {
	d.w.patch(d.w.raps(swarmNamespace), d.name, text(map[string]any{"spec": policy}))
}

// touch lets the oracle excuse delays for that time, because people or the cloud have just changed the database.
func (d *database) touch(span time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if until := time.Now().Add(span); until.After(d.touched) {
		d.touched = until
	}
}

// policyChanged stores the policy from now on. The caller holds the lock.
func (d *database) policyChanged(from v1alpha1.Spec) {
	spec := autopilot.DefaultSpec()
	d.w.must(json.Unmarshal([]byte(text(from)), &spec))
	on := spec.Mode != v1alpha1.ModeOff && (d.hasRds && d.switched != "false" || d.databasePlan.apply == "Alone")
	if last := d.policy(); len(d.policies) > 0 && last.on == on && reflect.DeepEqual(last.spec, spec) {
		return
	}
	if d.policies = append(d.policies, policyAt{time.Now(), spec, on}); !on { // what was seen of a former time is forgotten
		d.limitSeen = 0
	}
}

func (d *database) policy() policyAt {
	if len(d.policies) == 0 {
		return policyAt{}
	}
	return d.policies[len(d.policies)-1]
}

// policiesSince returns the policies that were in force at any time in that span. The caller holds the lock.
func (d *database) policiesSince(span time.Duration) []policyAt {
	i := len(d.policies) - 1
	for i > 0 && time.Since(d.policies[i].at) < span {
		i--
	}
	return d.policies[max(i, 0):]
}

// People clean up a read-only database, first too little and then enough. Otherwise it would stay read-only at its cap, which
// would cost time and find no further faults.
const (
	partlyCleanedAfter = 5 * time.Hour
	cleanedAfter       = 8 * time.Hour
)

// advance applies the load of a tick and takes a sample.
func (d *database) advance() {
	in := d.instance()
	d.judgeStarts(in)
	load := d.databasePlan.load.next(d.w.at(), in, d.first, &d.burst)
	if d.fullFor += tick; !in.ReadOnly {
		d.fullFor = 0
	}
	switch {
	case d.fullFor == partlyCleanedAfter:
		load.UsedGB *= 0.93
	case d.fullFor > cleanedAfter:
		load.UsedGB *= 0.6
	}
	d.w.must(d.w.sim.SetWorkload(in.ID, load))
	in = d.instance()
	now := sample{time.Now(), in.VolumeGB, in.Workload.UsedGB, min(100, 100*load.CPUDemand/float64(in.VCPUs)), min(100, 100*load.MemoryDemandGB/float64(in.MemoryGB)), in.Flavor, in.ReadOnly, false}
	d.judgeBusy(in)
	calm := d.w.calm()
	d.mu.Lock()
	defer d.mu.Unlock()
	if in.FailingJobs < d.failing {
		d.refusedAt = time.Now()
	}
	d.failing = in.FailingJobs
	switch {
	case !in.ReadOnly || !d.policy().on:
		d.limitSeen = 0
	case calm > settleTime && d.isSettled() && now.usedGB >= readOnlyAt(now.sizeGB):
		d.limitSeen += tick
	}
	// Without a leader, no process records when a growth is completed. The next leader compares the used space with the former
	// size.
	now.seemsReadOnly = now.readOnly || calm < evidence && slices.ContainsFunc(d.since(2*time.Hour), func(t sample) bool {
		return now.usedGB >= readOnlyAt(t.sizeGB)
	})
	if n := len(d.sample); n > 0 && d.sample[n-1].seemsReadOnly { // a sweep may miss a short time in which it is writable
		isFull := func(t sample) bool { return t.readOnly || t.usedGB > writableAt(t.sizeGB) }
		lately := d.since(d.w.plan.sweep + d.w.plan.delay + 10*time.Minute)
		now.seemsReadOnly = isFull(now) || slices.ContainsFunc(lately, isFull)
	}
	if n := len(d.sample); n > 0 && d.sample[n-1].readOnly != now.readOnly {
		d.w.logf(d.name, "read-only: %t, %.1f of %d GB used", now.readOnly, now.usedGB, now.sizeGB)
	}
	d.sample = append(d.sample, now)
	if most := int(9 * day / tick); len(d.sample) > 2*most { // a deferred change may be a week old
		d.sample = slices.Clone(d.sample[most:])
	}
	if d.resizing == in.Flavor {
		d.resizing = ""
	}
	if n := len(d.growths); n > 0 && d.growths[n-1].toGB > in.VolumeGB && d.specGB >= d.growths[n-1].toGB { // a full database may wait for hours
		d.growths[n-1].at = time.Now()
	}
}

// operator applies every Rds each few minutes, as the archived operator does: the volume first and only upwards.
type operator struct {
	w   *swarm
	api *otc.Cloud
}

func (o *operator) work(ctx context.Context) {
	for _, object := range o.w.kube.Objects(otcv1.GroupVersion().WithResource(otcv1.Resource)) {
		rds := decodeAs[otcv1.Rds](o.w.fleet, object)
		at := slices.IndexFunc(o.w.databases, func(d *database) bool { return d.name == rds.Name })
		if at < 0 {
			continue
		}
		d := o.w.databases[at]
		in, found := o.w.sim.Instance(rds.Status.ID)
		if !found {
			d.patchRds(map[string]any{"status": map[string]any{"id": d.id}})
			continue
		}
		if in.Status != rds.Status.Status {
			d.patchRds(map[string]any{"status": map[string]any{"status": in.Status}})
		}
		var err error
		acts := in.Status == simcloud.StatusActive || in.Status == simcloud.StatusStorageFull && !o.w.plan.fullWaits
		switch {
		case !acts || time.Now().Before(d.noOperator):
		case int(rds.Spec.VolumeSize) > in.VolumeGB:
			_, err = o.api.Enlarge(ctx, in.ID, int(rds.Spec.VolumeSize), nil)
		case rds.Spec.FlavorRef != in.Flavor && in.Status == simcloud.StatusActive:
			_, err = o.api.Resize(ctx, in.ID, rds.Spec.FlavorRef, nil)
		}
		if err != nil {
			d.refusedAt = time.Now()
			o.w.logf(d.name, "the cloud refuses the operator: %v", err)
		}
	}
}

// later calls a function after that time, unless the run has ended.
func (w *swarm) later(after time.Duration, call func()) {
	time.AfterFunc(after, func() {
		if w.t.Context().Err() == nil {
			call()
		}
	})
}

// apply applies an event of the plan.
func (w *swarm) apply(e event) {
	d := w.databases[e.database]
	in := d.instance()
	w.logf(d.name, "%s (%.2f)", e.what, e.number)
	if d.databasePlan.drops && w.leader() == nil && slices.Contains([]string{"on", "off", "off and on"}, e.what) {
		return // nobody may see a value that lasts a second
	}
	switch e.what {
	case "policy":
		d.touch(2 * time.Hour)
		d.patchPolicy(e.policy)
		w.logf(d.name, "the policy is %s", text(e.policy))
	case "mode":
		d.patchPolicy(map[string]any{"mode": []string{"Auto", "Auto", "Recommend", "Off"}[int(4*e.number)]})
		d.touch(2 * time.Hour)
	case "larger volume":
		d.peopled = time.Now()
		d.patchRds(map[string]any{"spec": map[string]any{"volumesize": in.VolumeGB + 10*int(1+5*e.number)}})
		d.touch(time.Hour)
	case "other flavor":
		d.peopled = time.Now()
		d.touch(2 * time.Hour)
		codes := w.siblings(in)
		d.patchRds(map[string]any{"spec": map[string]any{"flavorref": codes[int(e.number*float64(len(codes)))]}})
	case "former spec":
		d.peopled = time.Now()
		d.touch(26 * time.Hour) // contested
		d.patchRds(map[string]any{"spec": map[string]any{"volumesize": d.first.VolumeGB, "flavorref": d.first.Flavor}})
	case "off", "on":
		d.touch(2 * time.Hour)
		d.setSwitch(e.what == "on")
	case "off and on":
		d.touch(time.Hour)
		d.setSwitch(false)
		time.Sleep(time.Duration(e.number * e.number * e.number * float64(time.Minute)))
		d.setSwitch(true)
	case "status":
		status := []string{"BUILD", "BACKING UP", "REBOOTING", "FAILED"}[int(4*e.number)]
		lasts := time.Duration(1+w.draw(d.name, "status")) * 2 * time.Minute
		d.touch(lasts + 2*time.Hour)
		w.must(w.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) { in.Status = status }))
		time.AfterFunc(lasts, func() {
			_ = w.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) { in.Status = simcloud.StatusActive })
		})
	case "resets at every sync":
		spec := map[string]any{"spec": map[string]any{"volumesize": in.VolumeGB, "flavorref": in.Flavor}}
		syncs := 6 + int(100*e.number)
		d.peopled = time.Now().Add(time.Duration(syncs) * 10 * time.Minute)
		d.touch(time.Duration(syncs)*10*time.Minute + 26*time.Hour)
		d.resetsAt(10*time.Minute, syncs, spec)
	case "series":
		d.breakSeries(e.number)
	case "omits":
		d.touch(4 * time.Hour)
		keys := [][]string{{"cpu"}, {"mem"}, {"size"}, {"cpu", "mem"}}[int(4*e.number)]
		id := in.ID
		w.must(w.sim.ChangeInstance(id, func(in *simcloud.Instance) { in.Omits = keys }))
		time.AfterFunc(2*time.Hour, func() { _ = w.sim.ChangeInstance(id, func(in *simcloud.Instance) { in.Omits = nil }) })
	case "others first":
		d.touch(2 * time.Hour)
		w.must(w.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) { in.OthersFirst = []simcloud.OthersChange{{}} }))
	case "kill":
		w.replicas[int(2*e.number)].kill()
		w.disturb(failoverTime)
	case "freeze leader":
		if p := w.leader(); p != nil {
			p.frozen.Store(true)
			w.disturb(failoverTime + 5*time.Minute)
			time.AfterFunc(17*time.Minute, func() { p.frozen.Store(false) })
		}
	case "stop leader":
		if p := w.leader(); p != nil {
			w.disturb(failoverTime)
			p.stop()
		}
	case "job fails", "jobs fail":
		n := 1
		if e.what == "jobs fail" {
			n = 2 + int(10*e.number)
		}
		d.touch(time.Duration(n) * 2 * time.Hour)
		w.must(w.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) { in.FailingJobs = n }))
	case "foreign job":
		d.peopled = time.Now()
		d.touch(2 * time.Hour)
		codes := w.siblings(in)
		code := codes[int(e.number*float64(len(codes)))]
		_, err := w.operator.api.Resize(w.t.Context(), in.ID, code, nil)
		w.logf(d.name, "flavor change by another writer: %v", err)
	case "console growth":
		_, err := w.operator.api.Enlarge(w.t.Context(), in.ID, in.VolumeGB+10*int(1+3*e.number), nil)
		w.logf(d.name, "growth at the console: %v", err)
		d.touch(time.Hour)
	case "failover":
		w.must(w.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) {
			if len(in.Nodes) == 2 {
				in.Nodes[0].Role, in.Nodes[1].Role = in.Nodes[1].Role, in.Nodes[0].Role
			}
		}))
	case "sold out":
		codes := w.siblings(in)
		code := codes[int(e.number*float64(len(codes)))]
		w.soldOut.Store(code, time.Now().Add(24*time.Hour))
		w.sim.SetFlavorStatus(code, in.Nodes[0].Zone, simcloud.FlavorSoldOut)
		time.AfterFunc(24*time.Hour, func() { w.sim.SetFlavorStatus(code, in.Nodes[0].Zone, simcloud.FlavorNormal) })
	case "flavors refused":
		w.logf("", "the cloud refuses all flavors for 12 hours")
		w.refused = w.at() + 12*time.Hour
		w.sim.Configure(func(s *simcloud.Settings) {
			s.Refuse = maps.Clone(w.plan.settings.Refuse)
			if s.Refuse == nil {
				s.Refuse = map[string]simcloud.Refusal{}
			}
			s.Refuse["ResizeFlavor"] = simcloud.Refusal{Status: 403, Code: "DBS.200010", Message: "There is no permission."}
		})
		time.AfterFunc(12*time.Hour, func() {
			w.sim.Configure(func(s *simcloud.Settings) { s.Refuse = w.plan.settings.Refuse })
		})
	case "watches expire":
		w.kube.Compact()
	case "admission resets":
		d.peopled = time.Now()
		d.touch(4 * time.Hour)
		d.mu.Lock()
		d.resets = time.Now().Add(2 * time.Hour)
		d.mu.Unlock()
	case "jobs hang": // of all databases that begin one within two hours
		w.disturb(2 * time.Hour)
		set := func(enlarge, resize time.Duration) {
			w.sim.Configure(func(s *simcloud.Settings) { s.EnlargeDuration, s.ResizeDuration = enlarge, resize })
		}
		set(100*day, 100*day)
		w.later(2*time.Hour, func() { set(w.plan.settings.EnlargeDuration, w.plan.settings.ResizeDuration) })
	case "operator away": // of this database; for days in a fifth of all cases
		lasts := time.Duration((1 + 5*e.number) * float64(time.Hour))
		if e.number > 0.8 {
			lasts = 3 * day
		}
		d.noOperator = time.Now().Add(lasts)
		d.touch(lasts + time.Hour)
	}
}

// resetsAt writes the spec n times, as a writer does that syncs it from elsewhere.
func (d *database) resetsAt(every time.Duration, n int, spec map[string]any) {
	if n > 0 {
		d.patchRds(spec)
		d.w.later(every, func() { d.resetsAt(every, n-1, spec) })
	}
}

// breakSeries makes a series of the database unreadable or wrong for three hours. That must not affect other databases.
func (d *database) breakSeries(number float64) {
	faults := []simcloud.SeriesFault{
		{Refused: true}, {Value: "NaN"}, {Value: `"NaN"`}, {Value: "1e300", All: true}, {Value: "-5", All: true}, {Value: "null"}, {AboveVolume: true},
		{Future: 6 * time.Hour, All: true}, {Gaps: true}, {Doubles: true}, {Disorder: true}, {Value: `"text"`, All: true},
	}
	f := faults[int(number*float64(len(faults)))]
	metric := []string{"", "rds048_disk_used_size", "rds039_disk_util", "rds001_cpu_util"}[int(number*1000)%4]
	if metric == "" { // with one faulty series, the others suffice
		d.touch(4 * time.Hour)
	}
	d.w.logf(d.name, "series %q: %s", metric, text(f))
	id := d.id
	d.w.must(d.w.sim.ChangeInstance(id, func(in *simcloud.Instance) { in.SeriesFaults = map[string]simcloud.SeriesFault{metric: f} }))
	d.mu.Lock()
	d.faultsEnd = time.Now().Add(3 * time.Hour)
	d.mu.Unlock()
	time.AfterFunc(3*time.Hour, func() { _ = d.w.sim.ChangeInstance(id, func(in *simcloud.Instance) { in.SeriesFaults = nil }) })
}

// siblings returns the flavors to which the instance can change.
func (w *swarm) siblings(in simcloud.Instance) (codes []string) {
	for code, f := range w.flavors {
		if strings.HasSuffix(code, ".ha") == strings.HasSuffix(in.Flavor, ".ha") && !strings.HasSuffix(code, ".rr") &&
			strings.Split(code, ".")[1] == strings.Split(in.Flavor, ".")[1] && f.VCPUs <= 2*in.VCPUs && f.MemoryGB <= 2*in.MemoryGB {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// stored returns the open changes in the status.
func (d *database) stored() []openChange {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.intents
}

// inactiveSince returns since when the database is off; zero if it is on.
func (d *database) inactiveSince() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.policy().on {
		return time.Time{}
	}
	return d.policy().at
}

// since returns the truths of that span. The caller holds the lock.
func (d *database) since(span time.Duration) []sample {
	i := len(d.sample)
	for i > 0 && time.Since(d.sample[i-1].at) <= span {
		i--
	}
	return d.sample[i:]
}
