// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

const (
	policyLag  = 5 * time.Minute  // how long a round may still use a policy that was replaced
	evidence   = 30 * time.Minute // the oldest evidence of a decision
	settleTime = time.Hour        // after a new policy, after which every change must have ended
)

// slowest is how long the service may take to see what a measurement shows.
func (w *swarm) slowest() time.Duration {
	return w.plan.sweep + w.plan.settings.MetricDelay + 10*time.Minute
}

// admit is called with every write to the API server. It judges those of the service and follows all others.
func (w *swarm) admit(x simkube.Write) error {
	d := w.database(x.New.GetName())
	switch {
	case d == nil:
	case x.New.GetKind() == v1alpha1.Kind && x.Subresource == "":
		d.mu.Lock()
		defer d.mu.Unlock()
		d.policyChanged(decodeAs[v1alpha1.RdsAutopilot](w.fleet, x.New).Spec)
	case x.New.GetKind() == otcv1.Kind:
		next := decodeAs[otcv1.Rds](w.fleet, x.New).Spec
		if x.Old != nil {
			old := decodeAs[otcv1.Rds](w.fleet, x.Old).Spec
			if next.VolumeSize != old.VolumeSize {
				d.judgeVolume(int(next.VolumeSize))
			}
			if next.FlavorRef != old.FlavorRef {
				d.judgeFlavor(next.FlavorRef)
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.specGB = int(next.VolumeSize)
	}
	return nil
}

// maxGB is the cap of a policy.
func (d *database) maxGB(s v1alpha1.Spec) int {
	if s.Storage.MaxGB > 0 {
		return int(s.Storage.MaxGB)
	}
	return min(4000, max(200, 4*d.first.VolumeGB))
}

// isWithinCaps reports whether a policy allows a flavor of that size.
func (d *database) isWithinCaps(s v1alpha1.Flavor, f flavors.Flavor) bool {
	return f.VCPUs <= int(valueOr(s.MaxVCPUs, int32(4*d.first.VCPUs))) && f.MemoryGB <= int(valueOr(s.MaxMemoryGB, int32(4*d.first.MemoryGB)))
}

// isBusy reports whether the CPU or the memory of a sample is at the threshold of its alarm, plus more.
func isBusy(s v1alpha1.Flavor, t sample, more float64) (cpu, memory bool) {
	return *s.CPU.Enabled && t.cpu >= float64(s.CPU.ThresholdPercent)+more, *s.Memory.Enabled && t.memory >= float64(s.Memory.ThresholdPercent)+more
}

// judgeVolume judges a size that the service requests.
func (d *database) judgeVolume(to int) {
	in := d.instance()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.w.logf(d.name, "the service requests %d GB; the cloud has %d GB, %.1f GB used, %s", to, in.VolumeGB, in.Workload.UsedGB, in.Status)
	used, readOnly, size := 0.0, false, in.VolumeGB
	for _, t := range d.since(evidence + d.w.plan.settings.MetricDelay + 10*time.Minute) {
		used, readOnly = max(used, t.usedGB), readOnly || t.seemsReadOnly
		if time.Since(t.at) < 10*time.Minute { // the service may not know of the latest growth
			size = min(size, t.sizeGB)
		}
	}
	if readOnly && !d.isSettled() { // to the service it has just become read-only
		used = max(used, readOnlyAt(in.VolumeGB))
	}
	var why []string
	for _, p := range d.recentPolicies() {
		s := p.spec.Storage
		largest := largestSize(in.VolumeGB, used, int(s.ThresholdPercent), largestStep(in.VolumeGB, firstStep(s, in.VolumeGB), d.growths, time.Now()), readOnly)
		switch maxGB := d.maxGB(p.spec); {
		case !p.isAuto():
			why = append(why, "the policy does not allow it")
		case to > maxGB:
			why = append(why, fmt.Sprintf("the cap is %d GB", maxGB))
		case to <= size || to%10 != 0:
			why = append(why, "it is no larger size")
		case !isOver(size, used, int(s.ThresholdPercent)) && !readOnly:
			why = append(why, fmt.Sprintf("at most %.1f GB were used in the last %v", used, evidence))
		case to > largest:
			why = append(why, fmt.Sprintf("%.1f GB used need at most %d GB", used, largest))
		default:
			d.growths = append(d.growths, growthMade{time.Now(), to - in.VolumeGB, to})
			return
		}
	}
	d.w.violation(d.name, "%d GB are requested, which has no reason: %s", to, strings.Join(why, "; "))
}

// judgeFlavor judges a flavor that the service requests.
func (d *database) judgeFlavor(code string) {
	in, others := d.instance(), d.w.flavorsInProgress(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.w.logf(d.name, "the service requests %s; the cloud has %s, %s", code, in.Flavor, in.Status)
	from, to := d.w.flavors[in.Flavor], d.w.flavors[code]
	var why []string
	for _, p := range d.recentPolicies() {
		s := p.spec.Flavor
		span := evidence + d.w.plan.settings.MetricDelay + 40*time.Minute // and a period of at most 20 minutes, with the delay of the round
		if s.Window != nil {
			span += 7 * day
		}
		hasReason := slices.ContainsFunc(d.since(span), func(t sample) bool {
			cpu, memory := isBusy(s, t, -1e-6)
			return (cpu || memory) && (t.flavor == in.Flavor || d.w.plan.skew < 0) // a clock that is behind makes older data look new
		})
		lastDay, last := 0, 30*day
		for _, at := range d.resizes {
			if last = time.Since(at); last < 24*time.Hour-time.Minute {
				lastDay++
			}
		}
		local := time.Now().Add(d.w.plan.skew)
		switch {
		case !p.isAuto():
			why = append(why, "the policy does not allow it")
		case to.VCPUs < from.VCPUs || to.MemoryGB < from.MemoryGB || to.VCPUs == from.VCPUs && to.MemoryGB == from.MemoryGB:
			why = append(why, "it is not larger")
		case !d.isWithinCaps(s, to):
			why = append(why, "it is above the caps")
		case !hasReason:
			why = append(why, "the load of this flavor was below the thresholds")
		case !isOpen(s.Window, local) && !isOpen(s.Window, local.Add(-time.Minute)):
			why = append(why, "the window is closed")
		case lastDay >= int(s.MaxChangesPerDay):
			why = append(why, fmt.Sprintf("it has changed %d times in 24 hours", lastDay))
		case last < time.Duration(*s.CooldownSeconds)*time.Second-time.Minute:
			why = append(why, "the cooldown has not passed")
		case others >= d.w.plan.flavors:
			why = append(why, fmt.Sprintf("%d other flavors are in progress, and %d are allowed", others, d.w.plan.flavors))
		default:
			d.resizes, d.resizing = append(d.resizes, time.Now()), code
			return
		}
	}
	d.w.violation(d.name, "%s is requested, which has no reason: %s", code, strings.Join(why, "; "))
}

// busyFor reports whether the CPU and the memory have been over their thresholds for so long that the service surely has seen
// it, whether they may have been, and that neither storage nor another flavor was pending. The caller holds the lock.
func (d *database) busyFor(in simcloud.Instance, span time.Duration) (is, may [2]bool, ok bool) {
	p, all := d.policy(), d.since(span)
	is = [2]bool{true, true}
	for _, t := range all {
		if t.seemsReadOnly || isOver(t.sizeGB, t.usedGB, int(p.spec.Storage.ThresholdPercent)) || t.flavor != in.Flavor {
			return is, may, false
		}
		cpu, memory := isBusy(p.spec.Flavor, t, 1)
		cpuMay, memoryMay := isBusy(p.spec.Flavor, t, -1)
		is, may = [2]bool{is[0] && cpu, is[1] && memory}, [2]bool{may[0] || cpuMay, may[1] || memoryMay}
	}
	isQuiet := in.Status == simcloud.StatusActive && d.specGB <= in.VolumeGB && d.resizing == ""
	return is, may, p.isAuto() && isQuiet && (is[0] || is[1]) && len(all) >= int(span/tick)
}

// busySpan is how long a database must be busy before the service surely has seen it.
func (d *database) busySpan() time.Duration {
	a := d.policy().spec.Flavor.Alarm
	return time.Duration(a.PeriodSeconds*a.Count)*time.Second + d.w.slowest() + time.Hour
}

// larger reports whether a flavor that is larger in these dimensions surely fits, whether one may fit, and whether one is above
// the caps. It surely fits if it has the same family and at most twice of each.
func (d *database) larger(in simcloud.Instance, more [2]bool) (surely, may, above bool) {
	has := d.w.flavors[in.Flavor]
	for _, f := range d.w.flavors {
		isLarger := f.VCPUs >= in.VCPUs && f.MemoryGB >= in.MemoryGB && (!more[0] || f.VCPUs > in.VCPUs) && (!more[1] || f.MemoryGB > in.MemoryGB)
		if f.Engine == has.Engine && f.Mode == has.Mode && isLarger {
			isWithin, isFamily := d.isWithinCaps(d.policy().spec.Flavor, f), flavors.Family(f.Code) == flavors.Family(in.Flavor)
			surely = surely || isWithin && isFamily && f.VCPUs <= 2*in.VCPUs && f.MemoryGB <= 2*in.MemoryGB
			may, above = may || isWithin, above || !isWithin && isFamily
		}
	}
	return surely, may, above
}

// judgeBusy fails if the CPU or the memory of a database has been busy for hours, a larger flavor is there, nothing that the
// oracle knows of prevents the change, and it is not deferred to the window either. The caller holds the lock.
func (d *database) judgeBusy(in simcloud.Instance, last time.Time, isDeferred bool) {
	span := d.busySpan()
	open, closed := true, true
	for before := time.Duration(0); before <= span; before += 10 * time.Minute {
		isOpen := isOpen(d.policy().spec.Flavor.Window, time.Now().Add(-before))
		open, closed = open && isOpen, closed && !isOpen
	}
	weekly := 0 // the last two may have had no effect
	for _, at := range d.resizes {
		if time.Since(at) < 7*day {
			weekly++
		}
		last = latest(last, at.Add(24*time.Hour))
	}
	if d.reported["busy"] || weekly > 1 || time.Since(latest(last, d.policy().at)) < span {
		return
	}
	is, may, ok := d.busyFor(in, span)
	if fits, _, _ := d.larger(in, may); ok && fits && (open || closed && !isDeferred) {
		d.reported["busy"] = true
		d.w.violation(d.name, "busy for %v, CPU and memory %v, the window is open: %t, and no change from %s", span, is, open, in.Flavor)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lastFlavor returns until when another database may take the only place.
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
	clock := local.Format("15:04")
	on := func(t time.Time) bool {
		return len(w.Days) == 0 || slices.Contains(w.Days, v1alpha1.Day(t.Weekday().String()[:3]))
	}
	if w.Start < w.End {
		return on(local) && clock >= w.Start && clock < w.End
	}
	return on(local) && clock >= w.Start || on(local.AddDate(0, 0, -1)) && clock < w.End
}

// flavorsInProgress counts the other databases whose instance is changing to the flavor that the service has requested, or
// will once the operator has applied it.
func (w *swarm) flavorsInProgress(but *database) (n int) {
	for _, d := range w.databases {
		if d == but {
			continue
		}
		in := d.instance()
		d.mu.Lock()
		if d.resizing != "" && d.resizing != in.Flavor && d.isSettled() {
			n++
		}
		d.mu.Unlock()
	}
	return n
}

// judgeReadOnly fails if a database is read-only for 20 minutes longer than the operator and the cloud need to grow it.
func (d *database) judgeReadOnly() {
	in := d.instance()
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.policy()
	atLimit := time.Duration(0)
	for _, t := range d.since(4 * time.Hour) {
		if t.readOnly && t.usedGB >= readOnlyAt(t.sizeGB)-1e-6 {
			atLimit += tick
		}
	}
	isHidden := d.w.plan.settings.HideStorageFull && atLimit < d.w.plan.settings.MetricDelay+5*time.Minute // grown before a value showed it
	switch {
	case !in.ReadOnly || !p.isAuto() || !d.isSettled() || in.VolumeGB >= d.maxGB(p.spec) || isHidden:
		d.readOnlyFor = 0
	case in.Status != simcloud.StatusModifying: // else the cloud refuses another change
		d.readOnlyFor += tick
	}
	limit := operatorPeriod + d.w.plan.settings.EnlargeDuration + d.w.slowest() + 10*time.Minute
	if d.readOnlyFor > limit && !d.reported["read-only"] {
		d.reported["read-only"] = true
		d.w.violation(d.name, "read-only for %v: %.1f of %d GB used, the cap is %d GB", d.readOnlyFor, in.Workload.UsedGB, in.VolumeGB, d.maxGB(p.spec))
	}
}

// judgeEvent judges what the service reports at once.
func (w *swarm) judgeEvent(name string, e autopilot.Event) {
	d := w.database(name)
	if d == nil || e.Reason != "ReadOnly" {
		return
	}
	d.mu.Lock()
	isFull := slices.ContainsFunc(d.since(evidence+w.plan.settings.MetricDelay), func(t sample) bool {
		return t.readOnly || t.usedGB >= readOnlyAt(t.sizeGB)-1e-6
	})
	d.mu.Unlock()
	if !isFull {
		w.violation(name, "reported as read-only, and it never was: %s", e.Note)
	}
}

// judgeSettled judges the status of each database whose policy is not new, and the gauges.
func (w *swarm) judgeSettled() {
	all := w.autopilots()
	for i := range all {
		w.database(all[i].Name).judgeStatus(&all[i])
	}
	w.judgeGauges(all)
}

func (d *database) judgeStatus(a *v1alpha1.RdsAutopilot) {
	in, last := d.instance(), d.w.lastFlavor(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	isWrong := func(what string, wrong bool, format string, args ...any) {
		if wrong && !d.reported[what] {
			d.reported[what] = true
			d.w.violation(d.name, format, args...)
		}
	}
	s, p := a.Status, d.policy()
	isTrue := func(condition string) bool { return meta.IsStatusConditionTrue(s.Conditions, condition) }
	isWrong("size", len(text(s)) > 64<<10, "the status has %d bytes", len(text(s)))
	isWrong("future", s.ReadOnly != nil && s.ReadOnly.SinceTime.After(time.Now().Add(d.w.plan.skew.Abs())), "read-only in the future: %+v", s.ReadOnly)
	isWrong("contested", isTrue(v1alpha1.ConditionContested), "Contested, and nobody else changes anything")
	for _, c := range s.Changes {
		isEndless := c.State != v1alpha1.StateCompleted && time.Since(c.RequestTime.Time) > 2*time.Hour
		isWrong("change", c.By != v1alpha1.ByAutopilot || isEndless, "nothing fails, and this change does not end: %s", text(c))
	}
	if !d.isSettled() {
		return
	}
	if d.resizing != "" && time.Since(d.resizes[len(d.resizes)-1]) > 10*time.Minute {
		isWrong("not progressing", !isTrue(v1alpha1.ConditionProgressing), "the cloud changes it to %s for the service, and not Progressing", d.resizing)
	}
	df, used := s.Deferred, fmt.Sprintf("%.1f of %d GB used", in.Workload.UsedGB, in.VolumeGB)
	isWrong("deferred", df != nil && (time.Since(df.LastTime.Time) > 7*day+time.Hour || p.spec.Flavor.Window == nil), "deferred: %+v, the window is %+v", df, p.spec.Flavor.Window)
	if !p.isOn() {
		return
	}
	d.judgeBusy(in, last, df != nil)
	isWrong("armed", !isArmed(a) && in.Status != simcloud.StatusModifying, "not armed: %+v", armedCondition(a)) // a job may not end
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	isWrong("ready", isArmed(a) && ready.Status != "True" && time.Since(ready.LastTransitionTime.Time) > settleTime, "armed for long, and not ready: %s", ready.Message)
	isLimited := isTrue(v1alpha1.ConditionLimited)
	isWrong("not limited", !isLimited && d.isAtCap(in), "%s at the cap, and not Limited", used)
	isWrong("flavor not limited", !isLimited && d.isAtFlavorCaps(in), "busy for long, each flavor above %s is above the caps, and not Limited", in.Flavor)
	isWrong("limited", isLimited && df == nil && !d.isJustified("storage") && !d.isJustified("flavor"), "Limited without a reason, %s", used)
	isWrong("not read-only", s.ReadOnly == nil && d.limitSeen > d.w.slowest()+20*time.Minute, "read-only, but status.readOnly is not set: %s", used)
	isWritable := !slices.ContainsFunc(d.since(settleTime), func(t sample) bool { return t.seemsReadOnly })
	isWrong("readOnly", s.ReadOnly != nil && isWritable, "status.readOnly is set, and the database is writable: %s", used)
	isWrong("overThresholdSince", s.OverThresholdSince != nil && !d.isJustified("storage"), "over the threshold since %v, %s", s.OverThresholdSince, used)
}

// isAtCap reports whether the volume may grow, and has been at its cap and over its threshold for long. The caller holds the lock.
func (d *database) isAtCap(in simcloud.Instance) bool {
	p := d.policy()
	return p.isAuto() && d.isSettled() && in.Status == simcloud.StatusActive && in.VolumeGB >= d.maxGB(p.spec) &&
		!slices.ContainsFunc(d.since(2*time.Hour+d.w.slowest()), func(t sample) bool {
			return t.sizeGB != in.VolumeGB || !isOver(t.sizeGB, t.usedGB-1, int(p.spec.Storage.ThresholdPercent))
		})
}

// isAtFlavorCaps reports whether the flavor may change, its CPU or its memory has been busy for long, and each larger flavor
// is above the caps. The caller holds the lock.
func (d *database) isAtFlavorCaps(in simcloud.Instance) bool {
	is, may, ok := d.busyFor(in, d.busySpan())
	if !ok || !d.isSettled() || is != may || is[0] && is[1] { // both need a flavor that has more of both
		return false
	}
	_, fits, above := d.larger(in, is)
	return above && !fits
}

// isJustified reports whether the samples of the last hour justify a sign of a full volume or of a busy flavor. The caller
// holds the lock.
func (d *database) isJustified(sign string) bool {
	s := d.policy().spec
	return !d.isSettled() || slices.ContainsFunc(d.since(time.Hour+d.w.plan.settings.MetricDelay), func(t sample) bool {
		if sign == "storage" {
			return t.seemsReadOnly || isOver(t.sizeGB, t.usedGB, int(s.Storage.ThresholdPercent))
		}
		cpu, memory := isBusy(s.Flavor, t, -1e-6)
		return cpu || memory
	})
}

// judgeGauges fails if a gauge counts more databases than have a reason, or fewer than surely have one.
func (w *swarm) judgeGauges(all []v1alpha1.RdsAutopilot) {
	most, surely := map[string]int{}, map[string]int{}
	for i, a := range all {
		d := w.database(a.Name)
		in := d.instance()
		d.mu.Lock()
		if !d.policy().isOn() && d.isSettled() {
			d.mu.Unlock()
			continue
		}
		count := func(gauge string, may, must bool) {
			if may {
				most[gauge]++
			}
			if must && isArmed(&all[i]) {
				surely[gauge]++
			}
		}
		storage, flavor := d.isJustified("storage"), d.isJustified("flavor") || a.Status.Deferred != nil
		count("rds_autopilot_read_only", storage, a.Status.ReadOnly != nil && d.limitSeen > w.slowest()+20*time.Minute)
		count("rds_autopilot_held_changes", storage, d.isAtCap(in))
		count("rds_autopilot_held_changes", flavor, false)
		for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited, v1alpha1.ConditionContested} {
			c := meta.FindStatusCondition(a.Status.Conditions, kind)
			count("rds_autopilot_conditions", true, c != nil && c.Status == "True" && time.Since(c.LastTransitionTime.Time) > settleTime)
		}
		d.mu.Unlock()
	}
	for _, name := range []string{"rds_autopilot_read_only", "rds_autopilot_held_changes", "rds_autopilot_conditions"} {
		if got := int(w.service.metric(name)); (got > most[name] || got < surely[name]) && !w.reported[name] {
			w.reported[name] = true
			w.violation("", "%s is %d, and %d to %d have a reason", name, got, surely[name], most[name])
		}
	}
}

// allowCalls adds the calls of a tick to those allowed today if the service checks the database every 30 seconds: a change is
// pending, the instance is not ACTIVE, or an alarm is in force. A check makes at most five calls.
func (d *database) allowCalls() {
	in := d.instance()
	d.mu.Lock()
	defer d.mu.Unlock()
	if in.Status != simcloud.StatusActive || d.specGB > in.VolumeGB || d.resizing != "" || d.isJustified("storage") || d.isJustified("flavor") {
		d.w.mayCall += 5 * int(tick/(30*time.Second))
	}
}

// judgeDay fails if the service made more calls or events on a day than it may need.
func (w *swarm) judgeDay() {
	perSweep := 4 + len(w.databases) // the lists and the series, and a repair for each database
	most := int(2*day/w.plan.sweep)*perSweep + 200*len(w.databases) + w.mayCall
	w.mu.Lock()
	events, calls := w.events, w.calls
	w.events, w.calls, w.mayCall = map[string]int{}, 0, 0
	w.mu.Unlock()
	w.logf("", "%d calls to the cloud on this day, at most %d are allowed; events: %v", calls, most, events)
	if calls > most {
		w.violation("", "%d calls to the cloud on one day, at most %d are allowed", calls, most)
	}
	for name, n := range events {
		if n > 150 {
			w.violation(name, "%d events on one day", n)
		}
	}
}
