// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

const (
	policyLag  = 4 * time.Minute  // how long a round may still use a policy that was replaced
	evidence   = 30 * time.Minute // the oldest evidence of a decision
	settleTime = 45 * time.Minute // without disturbances, after which every change must have ended
)

// admit is called with every write to the API server. It judges those of the service and follows all others.
func (w *swarm) admit(x simkube.Write) error {
	i := slices.IndexFunc(w.databases, func(d *database) bool { return d.name == x.New.GetName() })
	if i < 0 {
		return nil
	}
	d := w.databases[i]
	switch {
	case x.New.GetKind() == v1alpha1.Kind && x.Subresource == "":
		d.mu.Lock()
		defer d.mu.Unlock()
		d.policyChanged(decodeAs[v1alpha1.RdsAutopilot](w.fleet, x.New).Spec)
	case x.New.GetKind() == v1alpha1.Kind:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.intents = openChanges(x.New.Object)
	case x.New.GetKind() == otcv1.Kind && x.Manager == "rds-autopilot":
		w.judgePatch(d, x)
		d.mu.Lock()
		defer d.mu.Unlock()
		spec := decodeAs[otcv1.Rds](w.fleet, x.New).Spec
		d.specFlavor = spec.FlavorRef
		if d.specGB = int(spec.VolumeSize); spec.FlavorRef != d.peoplesFlavor {
			d.peoplesFlavor = ""
		}
	case x.New.GetKind() == otcv1.Kind:
		d.mu.Lock()
		defer d.mu.Unlock()
		on, found, _ := unstructured.NestedBool(x.New.Object, "spec", "autopilot")
		spec := decodeAs[otcv1.Rds](w.fleet, x.New).Spec
		d.noteReverted(spec.FlavorRef)
		d.peoplesFlavor = spec.FlavorRef
		d.hasRds = true
		d.specGB, d.rdsGB, d.specFlavor = int(spec.VolumeSize), int(spec.VolumeSize), spec.FlavorRef
		if found { // an absent value says nothing
			d.switched = fmt.Sprint(on)
		}
		if len(d.policies) > 0 {
			d.policyChanged(d.policy().spec)
		}
	}
	return nil
}

// noteReverted stores when somebody else replaces the flavor of the service, which the cloud has had for a while, by a
// smaller one. The caller holds the lock.
func (d *database) noteReverted(to string) {
	n := len(d.resizes)
	if to == d.specFlavor || n == 0 {
		return
	}
	d.revertedAt = time.Time{}
	isOurs := d.ours == d.specFlavor && time.Since(d.resizes[n-1]) < 18*time.Hour
	was, is := d.w.flavors[d.specFlavor], d.w.flavors[to]
	isInCloud := !slices.ContainsFunc(d.since(settleTime), func(t sample) bool { return t.flavor != d.specFlavor })
	if isOurs && isInCloud && (is.VCPUs < was.VCPUs || is.MemoryGB < was.MemoryGB) {
		d.revertedAt = time.Now()
	}
}

// judgePatch judges a patch of the Rds: invariant 4, and the change that it requests.
func (w *swarm) judgePatch(d *database, x simkube.Write) {
	if x.Old == nil {
		w.violation(d.name, "the service creates an Rds")
		return
	}
	before, after := x.Old.DeepCopy().Object, x.New.DeepCopy().Object
	for _, o := range []map[string]any{before, after} {
		delete(o, "metadata")
		for _, field := range []string{"volumesize", "flavorref"} {
			unstructured.RemoveNestedField(o, "spec", field)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		w.violation(d.name, "the service changes the Rds (-before +after):\n%s", diff)
	}
	old, next := decodeAs[otcv1.Rds](w.fleet, x.Old), decodeAs[otcv1.Rds](w.fleet, x.New)
	if next.Spec.VolumeSize < old.Spec.VolumeSize {
		w.violation(d.name, "spec.volumesize goes from %d to %d", old.Spec.VolumeSize, next.Spec.VolumeSize)
	}
	d.mu.Lock()
	resets := time.Now().Before(d.resets)
	d.mu.Unlock()
	if next.Spec.VolumeSize != old.Spec.VolumeSize {
		d.judgeVolume(int(next.Spec.VolumeSize), "the Rds")
	}
	if next.Spec.FlavorRef != old.Spec.FlavorRef {
		d.judgeFlavor(next.Spec.FlavorRef, "the Rds")
	}
	if resets {
		_ = unstructured.SetNestedField(x.New.Object, int64(old.Spec.VolumeSize), "spec", "volumesize")
		_ = unstructured.SetNestedField(x.New.Object, old.Spec.FlavorRef, "spec", "flavorref")
	}
}

// maxGB is the cap of a policy. The caller holds the lock.
func (d *database) maxGB(s v1alpha1.Spec) int {
	if s.Storage.MaxGB > 0 {
		return int(s.Storage.MaxGB)
	}
	return min(4000, max(200, 4*d.capFrom.VolumeGB))
}

// isWithinCaps reports whether a policy allows a flavor of that size. The caller holds the lock.
func (d *database) isWithinCaps(s v1alpha1.Flavor, f flavors.Flavor) bool {
	return f.VCPUs <= int(valueOr(s.MaxVCPUs, int32(4*d.capFrom.VCPUs))) && f.MemoryGB <= int(valueOr(s.MaxMemoryGB, int32(4*d.capFrom.MemoryGB)))
}

// hasMore reports whether a flavor has more CPU, more memory or more of both than an instance, and less of nothing.
func hasMore(f flavors.Flavor, in simcloud.Instance, cpu, memory bool) bool {
	return f.VCPUs >= in.VCPUs && f.MemoryGB >= in.MemoryGB && (!cpu || f.VCPUs > in.VCPUs) && (!memory || f.MemoryGB > in.MemoryGB)
}

// busySpan is how long a database must be busy before the service surely has seen it.
func (w *swarm) busySpan(s v1alpha1.Flavor) time.Duration {
	return time.Duration(s.Alarm.PeriodSeconds*s.Alarm.Count)*time.Second + w.plan.delay + w.plan.sweep + time.Hour
}

// judgeVolume judges a size that the service requests.
func (d *database) judgeVolume(to int, where string) {
	in := d.instance()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.w.logf(d.name, "the service requests %d GB of %s; the cloud has %d GB, %.1f GB used, %s", to, where, in.VolumeGB, in.Workload.UsedGB, in.Status)
	d.setCapBase(in.VolumeGB, in.VCPUs, in.MemoryGB)
	d.judgeIntent(v1alpha1.KindVolume, strconv.Itoa(to), where)
	recent := d.since(evidence + d.w.plan.delay + 10*time.Minute)
	used, readOnly, size := 0.0, false, in.VolumeGB
	for _, t := range recent {
		used, readOnly = max(used, t.usedGB), readOnly || t.seemsReadOnly
		if time.Since(t.at) < 10*time.Minute || d.w.calm() < evidence { // the service may not know of the latest growth
			size = min(size, t.sizeGB)
		}
	}
	if readOnly && (!d.isSettled() || d.w.calm() < evidence) { // to the service it has just become read-only
		used = max(used, readOnlyAt(in.VolumeGB))
	}
	var why []string
	for _, p := range d.policiesSince(policyLag + d.w.plan.watchLag) {
		s := p.spec
		largest := largestSize(in.VolumeGB, used, int(s.Storage.ThresholdPercent), largestStep(in.VolumeGB, firstStep(s.Storage, in.VolumeGB), d.growths, time.Now()), readOnly)
		switch maxGB := d.maxGB(s); {
		case !p.on || s.Mode != v1alpha1.ModeAuto:
			why = append(why, "the policy does not allow it")
		case to > maxGB:
			why = append(why, fmt.Sprintf("the cap is %d GB", maxGB))
		case to < size || to%10 != 0:
			why = append(why, "it is no larger size")
		case where == "the cloud" && to == d.rdsGB: // a person's size counts as requested
			return
		case where == "the cloud" && to == d.specGB && (isOver(size, used, int(s.Storage.ThresholdPercent)) || readOnly):
			return // the patch of the Rds was judged, and steps were larger then
		case !isOver(size, used, int(s.Storage.ThresholdPercent)) && !readOnly:
			why = append(why, fmt.Sprintf("at most %.1f GB were used in the last %v", used, evidence))
		case to > largest:
			why = append(why, fmt.Sprintf("%.1f GB used need at most %d GB", used, largest))
		default:
			if n := len(d.growths); n == 0 || d.growths[n-1].toGB != to { // the Rds and the cloud get the same request
				d.growths = append(d.growths, growthMade{time.Now(), to - in.VolumeGB, to})
			}
			return
		}
	}
	d.w.violation(d.name, "%d GB are requested of %s, which has no reason: %s", to, where, strings.Join(why, "; "))
}

// judgeIntent fails if the service requests a change whose intent is not stored. The caller holds the lock.
func (d *database) judgeIntent(kind v1alpha1.ChangeKind, to, where string) {
	if !slices.ContainsFunc(d.intents, func(c openChange) bool { return c.kind == string(kind) && c.to == to }) {
		d.w.violation(d.name, "%s is requested of %s without a stored intent; these are stored: %v", to, where, d.intents)
	}
}

// setCapBase stores the size at first arming, from which the default caps are computed. The caller holds the lock.
func (d *database) setCapBase(volumeGB, vcpus, memoryGB int) {
	if d.capFrom.VolumeGB == 0 {
		d.capFrom.VolumeGB, d.capFrom.VCPUs, d.capFrom.MemoryGB = volumeGB, vcpus, memoryGB
	}
}

// judgeFlavor judges a flavor that the service requests.
func (d *database) judgeFlavor(code, where string) {
	in, others := d.instance(), d.w.flavorsInProgress(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.w.logf(d.name, "the service requests %s of %s; the cloud has %s, %s", code, where, in.Flavor, in.Status)
	d.setCapBase(in.VolumeGB, in.VCPUs, in.MemoryGB)
	d.judgeIntent(v1alpha1.KindFlavor, code, where)
	from, to := d.w.flavors[in.Flavor], d.w.flavors[code]
	if where == "the cloud" && in.Status != simcloud.StatusModifying { // else the cloud refuses it
		d.requests = append(d.requests, flavorRequest{time.Now(), code})
	}
	if code == d.resizing && where == "the cloud" {
		return // the patch of the Rds was judged
	}
	var why []string
	for _, p := range d.policiesSince(policyLag + d.w.plan.watchLag) {
		s := p.spec.Flavor
		span := evidence + d.w.plan.delay + 40*time.Minute // and a period of at most 20 minutes, with the delay of the round
		if s.Window != nil {
			span += 7 * day
		}
		cpu, memory := false, false
		for _, t := range d.since(span) {
			if t.flavor == in.Flavor || d.w.plan.skew < 0 { // a clock that is behind makes older data look new
				cpu = cpu || *s.CPU.Enabled && t.cpu >= float64(s.CPU.ThresholdPercent)-1e-6
				memory = memory || *s.Memory.Enabled && t.memory >= float64(s.Memory.ThresholdPercent)-1e-6
			}
		}
		lastDay, byOperator := 0, p.spec.Apply != v1alpha1.ApplyCloud // judgeStarts judges what the cloud has begun
		for _, at := range d.resizes {
			if time.Since(at) < 24*time.Hour-time.Minute {
				lastDay++
			}
		}
		switch {
		case !p.on || p.spec.Mode != v1alpha1.ModeAuto:
			why = append(why, "the policy does not allow it")
		case to.VCPUs < from.VCPUs || to.MemoryGB < from.MemoryGB || to.VCPUs == from.VCPUs && to.MemoryGB == from.MemoryGB:
			why = append(why, "it is not larger")
		case !d.isWithinCaps(s, to):
			why = append(why, "it is above the caps")
		case !cpu && !memory:
			why = append(why, "the load of this flavor was below the thresholds")
		case !isOpen(s.Window, time.Now().Add(d.w.plan.skew)) && !isOpen(s.Window, time.Now().Add(d.w.plan.skew-policyLag)):
			why = append(why, "the window is closed")
		case byOperator && lastDay >= int(s.MaxChangesPerDay):
			why = append(why, fmt.Sprintf("it has changed %d times in 24 hours", lastDay))
		case byOperator && len(d.resizes) > 0 && time.Since(d.resizes[len(d.resizes)-1]) < time.Duration(*s.CooldownSeconds)*time.Second-time.Minute:
			why = append(why, "the cooldown has not passed")
		case others >= d.w.plan.flavors && (where == "the Rds" || d.databasePlan.apply == "Alone"):
			why = append(why, fmt.Sprintf("%d other flavors are in progress, and %d are allowed", others, d.w.plan.flavors))
		default:
			d.resizes, d.resizing, d.ours = append(d.resizes, time.Now()), code, code
			return
		}
	}
	d.w.violation(d.name, "%s is requested of %s, which has no reason: %s", code, where, strings.Join(why, "; "))
}

// judgeStarts fails if the cloud began a flavor change that the service had requested within the cooldown of the one
// before, or more of them in 24 hours than the budget allows. It does not know what became of them.
func (d *database) judgeStarts(in simcloud.Instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []simcloud.Job
	for _, j := range d.w.sim.Jobs() {
		if j.Instance == in.ID && j.Name == "ResizeFlavor" {
			all = append(all, j)
		}
	}
	fresh := all[min(d.jobsSeen, len(all)):]
	d.jobsSeen = len(all)
	for _, j := range fresh {
		isOurs := slices.ContainsFunc(d.requests, func(r flavorRequest) bool { return r.code == j.To && r.at.Sub(j.Created).Abs() < 2*time.Second })
		if !isOurs || len(d.policies) == 0 {
			continue
		}
		d.w.logf(d.name, "the cloud begins the change to %s for the service", j.To)
		cooldown, budget, lastDay := time.Duration(math.MaxInt64), 0, 0
		for _, p := range d.policiesSince(policyLag + d.w.plan.watchLag) {
			s := p.spec.Flavor
			cooldown, budget = min(cooldown, time.Duration(*s.CooldownSeconds)*time.Second), max(budget, int(s.MaxChangesPerDay))
		}
		for _, at := range d.starts {
			if j.Created.Sub(at) < 24*time.Hour-time.Minute {
				lastDay++
			}
		}
		if n := len(d.starts); n > 0 && (j.Created.Sub(d.starts[n-1]) < cooldown-time.Minute || lastDay >= budget) {
			d.w.violation(d.name, "the cloud begins the change to %s, %v after the one before and as number %d of 24 hours", j.To, j.Created.Sub(d.starts[n-1]).Round(time.Second), lastDay+1)
		}
		d.starts = append(d.starts, j.Created)
	}
}

// judgeBusy fails if the CPU or the memory of a database has been busy for hours, a larger flavor is there, and nothing that
// the oracle knows of prevents the change.
func (d *database) judgeBusy(in simcloud.Instance) {
	calm, last := d.w.calm(), d.w.lastFlavor(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.policy()
	s := p.spec.Flavor
	if !p.on || p.spec.Mode != v1alpha1.ModeAuto || d.replicaID != "" || in.Status != simcloud.StatusActive || d.capFrom.VCPUs == 0 || d.reported["busy"] {
		return
	}
	needs := d.w.busySpan(s)
	for before := time.Duration(0); before <= needs; before += 10 * time.Minute {
		if !isOpen(s.Window, time.Now().Add(-before)) { // a deferred change waits
			return
		}
	}
	weekly := 0
	for _, at := range append(slices.Clone(d.starts), d.resizes...) {
		if weekly++; time.Since(at) > 7*day {
			weekly--
		}
		last = latest(last, at.Add(24*time.Hour))
	}
	last = latest(last, d.touched, p.at, d.peopled.Add(8*day), d.w.began.Add(d.w.refused))
	if d.peoplesFlavor != "" && d.peoplesFlavor != in.Flavor && d.hasRds { // people wait for another flavor
		return
	}
	if calm < needs || time.Since(last) < needs || weekly > 1 || d.specGB > max(in.VolumeGB, d.rdsGB) || d.w.plan.settings.Refuse != nil || d.w.plan.settings.UnknownFlavors != nil {
		return
	}
	all := d.since(needs)
	cpu, memory := *s.CPU.Enabled, *s.Memory.Enabled
	cpuMay, memoryMay := false, false // be in alarm beside the other, so that the flavor must have more of both
	for _, t := range all {
		if t.seemsReadOnly || isOver(t.sizeGB, t.usedGB, int(p.spec.Storage.ThresholdPercent)) || t.flavor != in.Flavor {
			return
		}
		cpu, memory = cpu && t.cpu > float64(s.CPU.ThresholdPercent)+1, memory && t.memory > float64(s.Memory.ThresholdPercent)+1
		cpuMay = cpuMay || *s.CPU.Enabled && t.cpu > float64(s.CPU.ThresholdPercent)-1
		memoryMay = memoryMay || *s.Memory.Enabled && t.memory > float64(s.Memory.ThresholdPercent)-1
	}
	for _, code := range d.w.siblings(in) {
		f := d.w.flavors[code]
		until, isSoldOut := d.w.soldOut.Load(code)
		isLarger := flavors.Family(f.Code) == flavors.Family(in.Flavor) && hasMore(f, in, cpuMay, memoryMay)
		if len(all) >= int(needs/tick) && (cpu || memory) && isLarger && (!isSoldOut || time.Since(until.(time.Time)) > needs) && d.isWithinCaps(s, f) {
			d.reported["busy"] = true
			d.w.violation(d.name, "busy for %v, CPU %t, memory %t, and nothing prevents the change from %s to %s", needs, cpu, memory, in.Flavor, code)
			return
		}
	}
}

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }

// lastFlavor returns when the service last requested a flavor of another database, which may take the only place.
func (w *swarm) lastFlavor(but *database) (last time.Time) {
	for _, d := range w.databases {
		d.mu.Lock()
		if n := len(d.resizes); n > 0 && d != but {
			last = latest(last, d.resizes[n-1].Add(2*time.Hour))
		}
		d.mu.Unlock()
	}
	return last
}

// isOpen reports whether a window is open.
func isOpen(w *v1alpha1.Window, now time.Time) bool {
	if w == nil {
		return true
	}
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return false
	}
	local := now.In(zone)
	start, _ := time.ParseInLocation("15:04", w.Start, zone)
	end, _ := time.ParseInLocation("15:04", w.End, zone)
	clock := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute
	from, to := time.Duration(start.Hour())*time.Hour+time.Duration(start.Minute())*time.Minute, time.Duration(end.Hour())*time.Hour+time.Duration(end.Minute())*time.Minute
	today, yesterday := local.Weekday().String()[:3], local.AddDate(0, 0, -1).Weekday().String()[:3]
	on := func(d string) bool { return len(w.Days) == 0 || slices.Contains(w.Days, v1alpha1.Day(d)) }
	if from < to {
		return on(today) && clock >= from && clock < to
	}
	return on(today) && clock >= from || on(yesterday) && clock < to
}

// flavorsInProgress counts the other databases whose instance is changing to the flavor that the service has requested, or
// will once the operator has applied it.
func (w *swarm) flavorsInProgress(but *database) (n int) {
	isCalm := w.calm() > 15*time.Minute
	for _, d := range w.databases {
		if d == but {
			continue
		}
		in := d.instance()
		d.mu.Lock()
		if d.resizing != "" && d.resizing != in.Flavor {
			age := time.Since(d.resizes[len(d.resizes)-1])
			waits := isCalm && d.policy().spec.Apply == v1alpha1.ApplyOperator && age < 10*time.Minute && time.Now().After(d.touched)
			if waits || age < 2*time.Hour && w.isResizing(in.ID, d.resizing) {
				n++
			}
		}
		d.mu.Unlock()
	}
	return n
}

// isResizing reports whether the cloud is changing an instance to that flavor.
func (w *swarm) isResizing(id, flavor string) bool {
	return slices.ContainsFunc(w.sim.Jobs(), func(j simcloud.Job) bool {
		return j.Instance == id && j.To == flavor && j.End.After(time.Now())
	})
}

// judgeReadOnly fails if a database is read-only for 20 minutes longer than the operator and the cloud need to grow it.
func (d *database) judgeReadOnly() {
	in := d.instance()
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.policy()
	free := p.on && p.spec.Mode == v1alpha1.ModeAuto && in.VolumeGB < d.maxGB(p.spec) && in.VolumeGB < 4000 && time.Now().After(d.touched) && !d.w.plan.settings.RefuseEnlargeWhenFull &&
		(!d.w.plan.fullWaits || p.spec.Apply == v1alpha1.ApplyCloud)
	atLimit := time.Duration(0)
	for _, t := range d.since(4 * time.Hour) {
		if t.readOnly && t.usedGB >= readOnlyAt(t.sizeGB)-1e-6 {
			atLimit += tick
		}
	}
	isHidden := d.w.plan.settings.HideStorageFull && atLimit < d.w.plan.delay+5*time.Minute // grown before a value showed it
	switch {
	case !in.ReadOnly || !free || in.FailingJobs > 0 || isHidden:
		d.readOnlyFor = 0
	case in.Status == simcloud.StatusModifying: // the cloud refuses another change
	case d.w.calm() > 15*time.Minute:
		d.readOnlyFor += tick
	}
	if limit := operatorPeriod + d.w.plan.settings.EnlargeDuration + d.w.plan.delay + d.w.plan.sweep + 20*time.Minute; d.readOnlyFor > limit && !d.reported["read-only"] {
		d.reported["read-only"] = true
		d.w.violation(d.name, "read-only for %v of calm: %.1f of %d GB used, the cap is %d GB", d.readOnlyFor, in.Workload.UsedGB, in.VolumeGB, d.maxGB(p.spec))
	}
}

// judgeEvent judges what the service reports at once.
func (w *swarm) judgeEvent(name string, e autopilot.Event) {
	i := slices.IndexFunc(w.databases, func(d *database) bool { return d.name == name })
	if i < 0 || e.Reason != "ReadOnly" || w.plan.skew > 5*time.Minute { // such a clock mistakes the size at the time of a value
		return
	}
	d := w.databases[i]
	d.mu.Lock()
	isFull := len(d.sample) == 0 || time.Now().Before(d.touched) || slices.ContainsFunc(d.since(evidence+d.w.plan.delay), func(t sample) bool {
		return t.readOnly || t.usedGB >= readOnlyAt(t.sizeGB)-1e-6
	})
	d.mu.Unlock()
	if !isFull {
		w.violation(name, "reported as read-only, and it never was: %s", e.Note)
	}
}

// judgeSettled judges the status of each database after a time without disturbances.
func (w *swarm) judgeSettled() {
	all := w.autopilots()
	for _, a := range all {
		if size := len(text(a.Status)); size > 64<<10 {
			w.violation(a.Name, "the status has %d bytes", size)
		}
	}
	for _, a := range all {
		if r := a.Status.ReadOnly; r != nil && r.SinceTime.After(time.Now().Add(w.plan.skew.Abs())) {
			w.violation(a.Name, "read-only since %v, in the future", r.SinceTime)
		}
	}
	if w.calm() < settleTime {
		return
	}
	w.judgeGauges(all)
	for i := range all {
		a := &all[i]
		at := slices.IndexFunc(w.databases, func(d *database) bool { return d.name == a.Name })
		if at < 0 {
			continue
		}
		d := w.databases[at]
		in := d.instance()
		d.mu.Lock()
		isSettled, p, writable, limitSeen, faultsEnd := d.isSettled(), d.policy(), true, d.limitSeen, d.faultsEnd
		for _, t := range d.since(settleTime) {
			writable = writable && !t.seemsReadOnly
		}
		d.mu.Unlock()
		once := func(what, format string, args ...any) {
			if !d.reported[what] {
				d.reported[what] = true
				w.violation(d.name, format, args...)
			}
		}
		s := a.Status
		if d.isReverted() && !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionContested) {
			once("not contested", "the flavor of the service was replaced by a smaller one at %v, and not Contested", d.revertedAt)
		}
		progressing := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing)
		if d.isInProgress(in) && progressing.Reason == "NoChangePending" { // another reason is that of a refusal
			once("not progressing", "the cloud changes it to %s for the service, and not Progressing", d.resizing)
		}
		if !isSettled {
			continue
		}
		if p.on && !isArmed(a) && in.Status != simcloud.StatusModifying { // a job may not end
			once("armed", "not armed: %+v", armedCondition(a))
		}
		if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); p.on && isArmed(a) && ready.Status != "True" && time.Since(faultsEnd) > settleTime &&
			w.plan.settings.Refuse == nil && time.Since(ready.LastTransitionTime.Time) > settleTime {
			once("ready", "armed for long, and not ready: %s", ready.Message)
		}
		if !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionLimited) && d.isAtCap(in) {
			once("not limited", "%.1f of %d GB used at the cap, and not Limited", in.Workload.UsedGB, in.VolumeGB)
		}
		if !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionLimited) && d.isAtFlavorCaps(in) {
			once("flavor not limited", "busy for long, each flavor above %s is above the caps, and not Limited", in.Flavor)
		}
		if p.on && s.Baseline != nil {
			d.mu.Lock()
			if d.base != nil && *d.base != *s.Baseline && d.base.VCPUs != 0 && d.base.VolumeGB != 0 {
				w.logf(d.name, "the baseline changes from %+v to %+v", *d.base, *s.Baseline)
			}
			d.base = s.Baseline
			d.capFrom.VolumeGB, d.capFrom.VCPUs, d.capFrom.MemoryGB = int(s.Baseline.VolumeGB), int(s.Baseline.VCPUs), int(s.Baseline.MemoryGB)
			d.mu.Unlock()
		}
		// The cloud may refuse every change of a full instance.
		mayStart := in.Status == simcloud.StatusActive && writable && p.on && w.at() > w.refused+time.Hour && time.Since(d.refusedAt) > 2*time.Hour
		for _, c := range d.stored() {
			if time.Since(c.requested) > 2*time.Hour && mayStart {
				once("pending", "pending since %v: %s → %s", time.Since(c.requested).Round(time.Minute), c.kind, c.to)
			}
		}
		if s.ReadOnly == nil && in.ReadOnly && limitSeen > w.plan.sweep+w.plan.delay+30*time.Minute {
			once("not read-only", "read-only, but status.readOnly is not set: %.1f of %d GB used", in.Workload.UsedGB, in.VolumeGB)
		}
		if s.ReadOnly != nil && writable && p.on {
			once("readOnly", "status.readOnly is set, and the database is writable: %.1f of %d GB used", in.Workload.UsedGB, in.VolumeGB)
		}
		if df := s.Deferred; df != nil && (time.Since(df.LastTime.Time) > 7*day+time.Hour || p.spec.Flavor.Window == nil) {
			once("deferred", "deferred at %v, the window is %+v", df.LastTime, p.spec.Flavor.Window)
		}
		if since := s.OverThresholdSince; since != nil && !d.isJustified("storage") {
			once("overThresholdSince", "over the threshold since %v, and %.1f of %d GB are used", since, in.Workload.UsedGB, in.VolumeGB)
		}
		if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionLimited) && s.Deferred == nil && !d.isJustified("storage") && !d.isJustified("flavor") {
			once("limited", "Limited: %s", meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionLimited).Message)
		}
		if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionContested); c != nil && c.Status == "True" && time.Since(d.peopled) > 9*day {
			once("contested", "Contested, and nobody has changed anything for 9 days: %s", c.Message)
		}
	}
}

// isReverted reports whether somebody else has replaced the flavor of the service by a smaller one in the last days, under
// the present policy.
func (d *database) isReverted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, since := d.policy(), time.Since(d.revertedAt)
	return p.on && p.at.Before(d.revertedAt) && since > settleTime && since < 6*day
}

// isInProgress reports whether the cloud has been changing the database to the flavor of the service for a while.
func (d *database) isInProgress(in simcloud.Instance) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resizing == "" || !d.policy().on {
		return false
	}
	last := d.resizes[len(d.resizes)-1]
	if d.refusedAt.After(last) { // its job has failed, and another writer repeats it
		return false
	}
	age := time.Since(last)
	return age > 10*time.Minute && d.specFlavor == d.resizing && time.Since(d.policy().at) > age && d.w.isResizing(in.ID, d.resizing)
}

// isSettled reports whether no delay of the database is excused any more. The caller holds the lock.
func (d *database) isSettled() bool {
	return time.Since(d.touched) > settleTime && time.Since(d.policy().at) > settleTime
}

// isAtCap reports whether the volume may grow, and has been at its cap and over its threshold for long.
func (d *database) isAtCap(in simcloud.Instance) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.policy()
	s := p.spec
	all := d.since(2*time.Hour + d.w.plan.sweep + d.w.plan.delay)
	mayGrow := p.on && s.Mode == v1alpha1.ModeAuto && d.isSettled()
	return mayGrow && in.Status == simcloud.StatusActive && in.VolumeGB >= d.maxGB(s) && len(in.SeriesFaults) == 0 && d.specGB <= in.VolumeGB &&
		!slices.ContainsFunc(all, func(t sample) bool {
			return t.sizeGB != in.VolumeGB || !isOver(t.sizeGB, t.usedGB-1, int(s.Storage.ThresholdPercent))
		})
}

// isAtFlavorCaps reports whether the flavor may change, its CPU or its memory has been busy for long, and each larger flavor
// is above the caps.
func (d *database) isAtFlavorCaps(in simcloud.Instance) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.policy()
	s := p.spec.Flavor
	mayChange := p.on && p.spec.Mode == v1alpha1.ModeAuto && d.isSettled() && d.replicaID == "" && d.w.plan.settings.UnknownFlavors == nil &&
		time.Since(d.faultsEnd) > settleTime && time.Since(d.peopled) > 8*day
	if !mayChange || d.capFrom.VCPUs == 0 || in.Status != simcloud.StatusActive || d.specFlavor != in.Flavor && d.hasRds || d.specGB > in.VolumeGB {
		return false
	}
	busy, busyMay := [2]bool{true, true}, [2]bool{} // CPU, memory
	for _, t := range d.since(d.w.busySpan(s)) {
		if t.flavor != in.Flavor || t.seemsReadOnly || isOver(t.sizeGB, t.usedGB, int(p.spec.Storage.ThresholdPercent)) {
			return false
		}
		for i, over := range [2]float64{t.cpu - float64(s.CPU.ThresholdPercent), t.memory - float64(s.Memory.ThresholdPercent)} {
			busy[i], busyMay[i] = busy[i] && over > 1, busyMay[i] || over > -1
		}
	}
	on := [2]bool{*s.CPU.Enabled, *s.Memory.Enabled}
	cpu, memory := on[0] && busy[0], on[1] && busy[1]
	if cpu == memory || on[0] && busyMay[0] != cpu || on[1] && busyMay[1] != memory { // both need a flavor that has more of both
		return false
	}
	fits, above, has := false, false, d.w.flavors[in.Flavor]
	for _, f := range d.w.flavors {
		if f.Engine == has.Engine && f.Mode == has.Mode && hasMore(f, in, cpu, memory) {
			isWithin := d.isWithinCaps(s, f)
			fits, above = fits || isWithin, above || !isWithin && flavors.Family(f.Code) == flavors.Family(has.Code)
		}
	}
	return above && !fits
}

// isJustified reports whether the samples of the last hour justify a sign of a full volume or of a busy flavor.
func (d *database) isJustified(sign string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.policy().spec
	if !d.isSettled() {
		return true
	}
	return slices.ContainsFunc(d.since(time.Hour+d.w.plan.delay), func(t sample) bool {
		if sign == "storage" {
			return t.seemsReadOnly || isOver(t.sizeGB, t.usedGB, int(s.Storage.ThresholdPercent))
		}
		return *s.Flavor.CPU.Enabled && t.cpu >= float64(s.Flavor.CPU.ThresholdPercent)-1e-6 || *s.Flavor.Memory.Enabled && t.memory >= float64(s.Flavor.Memory.ThresholdPercent)-1e-6
	})
}

// judgeGauges fails if a gauge of the leader counts more databases than have a reason, or fewer than surely have one.
func (w *swarm) judgeGauges(all []v1alpha1.RdsAutopilot) {
	p := w.leader()
	if p == nil {
		return
	}
	readOnly, held, conditions := 0, 0, 0
	surely := map[string]int{}
	for _, a := range all {
		i := slices.IndexFunc(w.databases, func(d *database) bool { return d.name == a.Name })
		d := w.databases[i]
		if at := d.inactiveSince(); !at.IsZero() && time.Since(at) > settleTime {
			continue
		}
		conditions += 3
		if a.Status.ReadOnly != nil && isArmed(&a) && d.limitSeen > d.w.plan.sweep+d.w.plan.delay+30*time.Minute {
			surely["rds_autopilot_read_only"]++
		}
		if isArmed(&a) && d.isAtCap(d.instance()) {
			surely["rds_autopilot_held_changes"]++
		}
		for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited, v1alpha1.ConditionContested} {
			if c := meta.FindStatusCondition(a.Status.Conditions, kind); c != nil && c.Status == "True" && time.Since(c.LastTransitionTime.Time) > settleTime {
				surely["rds_autopilot_conditions"]++
			}
		}
		if d.isJustified("storage") {
			readOnly, held = readOnly+1, held+1
		}
		if d.isJustified("flavor") || a.Status.Deferred != nil {
			held++
		}
	}
	for name, most := range map[string]int{"rds_autopilot_read_only": readOnly, "rds_autopilot_held_changes": held, "rds_autopilot_conditions": conditions} {
		if got := w.sumOf(p.metrics, name); int(got) > most && !w.reported[name] {
			w.reported[name] = true
			w.violation("", "%s is %.0f, and at most %d have a reason", name, got, most)
		} else if int(got) < surely[name] && !w.reported["few "+name] {
			w.reported["few "+name] = true
			w.violation("", "%s is %.0f, and %d have a reason", name, got, surely[name])
		}
	}
}

// allowCalls adds the calls of a tick to those allowed today if the service checks the database every 30 seconds: a change is
// pending, the instance is not ACTIVE, or an alarm is in force. A check makes at most five calls.
func (d *database) allowCalls() {
	in := d.instance()
	d.mu.Lock()
	isPending := in.Status != simcloud.StatusActive || d.hasRds && d.rdsGB != in.VolumeGB || d.resizing != "" || time.Since(d.touched) < settleTime ||
		d.w.plan.skew > 5*time.Minute // to such a clock, no value shows that a database is writable again
	d.mu.Unlock()
	if isPending || d.isJustified("storage") || d.isJustified("flavor") {
		d.w.mayCall += 5 * int(tick/(30*time.Second))
	}
}

// judgeDay fails if the service made more calls or events on a day than it may need.
func (w *swarm) judgeDay() {
	perSweep := 4 + len(w.databases) // the lists and the series, and a repair for each database
	most := int(2*day/w.plan.sweep)*perSweep + 200*len(w.databases) + w.mayCall
	w.mayCall = 0
	w.mu.Lock()
	events, operations, calls := w.events, w.calls, 0
	w.events, w.calls = map[string]int{}, map[string]int{}
	w.mu.Unlock()
	for _, n := range operations {
		calls += n
	}
	w.logf("", "%d calls to the cloud on this day, at most %d are allowed: %v; events: %v", calls, most, operations, events)
	if calls > most {
		w.violation("", "%d calls to the cloud on one day", calls)
	}
	for name, n := range events {
		if n > 150 && w.plan.skew.Abs() < 5*time.Minute { // else stale evidence and a deferred change may alternate
			w.violation(name, "%d events on one day", n)
		}
	}
}
