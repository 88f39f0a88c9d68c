// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// failIf notes the first promise that is broken.
func (w *world) failIf(is bool, format string, args ...any) {
	if is && w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func vcpus(code string) int {
	f, _ := flavors.Find(sold(), code)
	return f.VCPUs
}

// judgeRequest judges a request of ours as it is sent.
func (w *world) judgeRequest(d *database, a v1alpha1.Change) {
	w.failIf(d.rap.mode != v1alpha1.ModeAuto, "%s is requested in mode %s", a.To, d.rap.mode)
	if a.Kind == volume {
		w.judgeGrowth(d, a)
		return
	}
	w.failIf(vcpus(a.To) <= vcpus(d.has.Flavor) || vcpus(a.To) > 8, "%s is requested although the cloud has %s", a.To, d.has.Flavor)
	inDay := int32(1)
	for _, x := range d.attempts {
		if x.kind != flavor || x.known != change.Checked {
			continue
		}
		age := w.now.Sub(x.at)
		if w.failIf(age < time.Hour, "%s is requested %s after %s", a.To, age, x.to); age < change.DaySpan {
			inDay++
		}
		w.failIf(!a.EvidenceTime.After(x.evidence), "%s is requested by the evidence of %s", a.To, x.to)
	}
	w.failIf(w.now.Sub(d.restarted) < time.Hour, "%s is requested %s after a restart of ours", a.To, w.now.Sub(d.restarted))
	w.failIf(inDay > w.budget, "%s is request %d of a day", a.To, inDay)
	for i := range w.all {
		x := &w.all[i]
		isStarted := x.job.isRunning && x.job.isVisible || w.hasRds && x.wrote.flavor == ours && x.isOpen(flavor)
		isOurs := slices.ContainsFunc(x.attempts, func(a attempt) bool { return a.hasArrived && !a.isMade && w.now.Sub(a.at) < 2*time.Hour })
		w.failIf(x != d && isStarted && isOurs, "%s is requested while the flavor of another database changes", a.To)
	}
}

func (w *world) judgeGrowth(d *database, a v1alpha1.Change) {
	to := autopilot.Gigabytes(a.To)
	w.failIf(to <= d.has.VolumeGB || w.hasRds && to <= d.spec.VolumeGB || to > int(d.rap.maxGB),
		"%d GB are requested: the cloud has %d, the Rds %d, and the cap is %d", to, d.has.VolumeGB, d.spec.VolumeGB, d.rap.maxGB)
	for _, x := range d.attempts {
		grown := autopilot.Gigabytes(x.to)
		isAgain := x.kind == volume && d.has.VolumeGB >= grown && to > grown && !a.EvidenceTime.After(x.evidence)
		w.failIf(isAgain, "%d GB are requested by the evidence of %d", to, grown)
	}
	waits := [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
	if d.rap.status.ReadOnly != nil || autopilot.NearlyReadOnly(d.has.VolumeGB, d.measured.usedGB) {
		waits = [...]time.Duration{10 * time.Second, 30 * time.Second, time.Minute}
	}
	recent := slices.DeleteFunc(slices.Clone(d.resets), func(t time.Time) bool { return w.now.Sub(t) >= change.DaySpan })
	if n := len(recent); n > 0 {
		age := w.now.Sub(recent[n-1])
		w.failIf(age < waits[min(n, 3)-1], "%d GB are requested %s after another writer has taken them back, %d times", to, age, n)
	}
}

// following are the states that may follow a state within a step, in which two moves may happen: if the cloud has a flavor
// after all, the spec may request less.
func following(s v1alpha1.ChangeState) string {
	return map[v1alpha1.ChangeState]string{
		"": "Requested Started Refused Replaced", v1alpha1.StateRequested: "Started Refused Completed Lost Replaced",
		v1alpha1.StateStarted: "Completed Failed", v1alpha1.StateRefused: "Withdrawn", v1alpha1.StateCompleted: "Replaced Reverted",
		v1alpha1.StateLost: "Completed Replaced Reverted", v1alpha1.StateFailed: "Completed Replaced Reverted",
		v1alpha1.StateReplaced: "Completed Reverted",
	}[s]
}

// judge judges what a step has written.
func (w *world) judge(before *world) {
	for i := range w.all {
		d, was := &w.all[i], &before.all[i]
		if d.rap.version == was.rap.version {
			continue
		}
		for _, ch := range d.rap.status.Changes {
			if !slices.ContainsFunc(was.rap.status.Changes, func(x v1alpha1.Change) bool { return change.IsSame(x, ch) }) {
				w.judgeChange(d, was, ch)
			}
		}
		w.judgeBook(d)
		isWritable := d.series == valid && d.measured.usedGB <= autopilot.WritableAt(d.has.VolumeGB)
		w.failIf(was.rap.status.ReadOnly != nil && d.rap.status.ReadOnly == nil && !isWritable, "readOnly is forgotten: %s", describe(d))
	}
}

// judgeCheck judges the status that a check has just written.
func (w *world) judgeCheck(d *database, p prepared) {
	s := &d.rap.status
	if p.c.Instance == nil || p.isOff {
		return
	}
	if d.made.flavor == ours {
		d.restarted = d.madeTime
	}
	isProgressing := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionProgressing)
	w.failIf(isProgressing != change.AnyPending(s.Changes), "Progressing is %t: %s", isProgressing, describe(d))
	for _, kind := range w.kinds {
		to := d.spec.Of(kind)
		isKnown := slices.ContainsFunc(s.Changes, func(ch v1alpha1.Change) bool {
			isOurs := ch.State == v1alpha1.StateCompleted || ch.State == v1alpha1.StateReverted || change.IsPending(ch) || isOvertaken(ch)
			return ch.Kind == kind && ch.To == to && (ch.By == ours && isOurs || change.IsRequestOfOther(ch))
		})
		isTheirs := w.hasRds && *d.wrote.of(kind) == others && d.isOpen(kind)
		w.failIf(isTheirs && !isKnown, "a person requests %s, and nothing says so: %s", to, describe(d))
	}
}

// firstAttempt returns when a change was sent for the first time.
func (d *database) firstAttempt(ch v1alpha1.Change) time.Time {
	for _, a := range d.attempts {
		if ch.RequestTime != nil && a.at.Equal(ch.RequestTime.Time) {
			return a.first
		}
	}
	return ch.RequestTime.Time // killed before it was sent
}

// isOvertaken reports whether a larger size has taken the place of one that the spec had. If the larger one is not sent, the
// spec still has the former, and the list does not say whose it is.
func isOvertaken(ch v1alpha1.Change) bool {
	return ch.Kind == volume && ch.By == ours && ch.State == v1alpha1.StateLost && ch.SeenTime != nil
}

// judgeChange judges an entry that the step has written: it must say what has happened, as far as a check could see it.
func (w *world) judgeChange(d, was *database, ch v1alpha1.Change) {
	has, wanted, gb := was.has.Of(ch.Kind), was.spec.Of(ch.Kind), autopilot.Gigabytes(ch.To)
	cloudHas := has == ch.To || ch.Kind == volume && was.has.VolumeGB >= gb
	specHas := wanted == ch.To || ch.Kind == volume && was.spec.VolumeGB >= gb
	former, isRecent, isClear := v1alpha1.ChangeState(""), false, true
	for _, x := range was.rap.status.Changes {
		if x.Kind != ch.Kind || x.To != ch.To {
			continue
		}
		if x.By == ch.By && x.RequestTime.Equal(ch.RequestTime) {
			former = x.State
		}
		isOpen := x.By == ours && x.State != v1alpha1.StateWithdrawn && (change.IsPending(x) || w.now.Sub(x.EndTime.Time) < change.DaySpan)
		isRecent, isClear = isRecent || isOpen && !isOvertaken(x), isClear && !isOvertaken(x)
	}
	isClear = isClear && !slices.ContainsFunc(d.rap.status.Changes, func(x v1alpha1.Change) bool { return x.To == ch.To && isOvertaken(x) })
	j := was.job
	runs := j.isRunning && j.by == ours && j.kind == ch.Kind && j.to == ch.To && ch.By == ours && !j.began.Before(d.firstAttempt(ch))
	isLie := false
	switch ch.State {
	case v1alpha1.StateCompleted:
		isLie = !cloudHas && j.to != ch.To || ch.By == others && *was.made.of(ch.Kind) == ours && isRecent
	case v1alpha1.StateRefused, v1alpha1.StateWithdrawn:
		isLie = slices.ContainsFunc(d.attempts, func(a attempt) bool {
			return a.hasArrived && a.kind == ch.Kind && a.first.Equal(d.firstAttempt(ch))
		})
	case v1alpha1.StateFailed:
		isLie = runs || cloudHas
	case v1alpha1.StateLost:
		isLie = cloudHas || runs && j.isVisible
	case v1alpha1.StateReplaced:
		isLie = w.hasRds && specHas || !w.hasRds && cloudHas
	case v1alpha1.StateReverted:
		isLie = !w.hasRds || cloudHas || !specHas
	case v1alpha1.StateRequested:
		isLie = ch.By == others && (specHas && *was.wrote.of(ch.Kind) == ours && isClear || cloudHas)
	}
	isMove := ch.By == others || former == ch.State || strings.Contains(following(former), string(ch.State))
	w.failIf(isLie || !isMove, "%s → %s %s of %s: the Rds requests %s by %s, %s", former, ch.State, ch.To, ch.By, wanted, *was.wrote.of(ch.Kind), describe(d))
}

// judgeBook judges that what may have begun counts as a start, and that what was not sent or refused does not.
func (w *world) judgeBook(d *database) {
	starts := change.FlavorStarts(d.rap.status.Changes)
	for _, a := range d.attempts {
		if a.kind != flavor || w.now.Sub(a.at) >= change.DaySpan {
			continue
		}
		isCounted := slices.ContainsFunc(starts, func(t time.Time) bool { return !t.Before(a.at) })
		w.failIf(a.known == change.Checked && !isCounted, "the request of %s counts for nothing: %s", a.to, describe(d))
		for _, ch := range d.rap.status.Changes {
			isUnmade := ch.State == v1alpha1.StateRequested || ch.State == v1alpha1.StateLost
			isIt := ch.By == ours && isUnmade && ch.StartTime == nil && ch.RequestTime.Time.Equal(a.at)
			w.failIf(a.known != change.Checked && isIt, "%s was not sent or refused, and counts as a start: %s", a.to, describe(d))
		}
	}
}

func describe(d *database) string {
	text := fmt.Sprintf("%.0f of %d GB, %s, mode %s; changes:", d.measured.usedGB, d.has.VolumeGB, d.has.Flavor, d.rap.mode)
	for _, ch := range d.rap.status.Changes {
		text += fmt.Sprintf(" [%s %s by %s]", ch.State, ch.To, ch.By)
	}
	return text
}

// settle ends all faults: autopilot is on, values come, the operator and the cloud do what is requested. Then the disk must
// grow and what is pending must end. Once the load ends as well, nothing may outlive its reason.
func (w *world) settle() {
	for i := range w.all {
		d := &w.all[i]
		d.isGone, d.series, d.flight = false, valid, nil
		if d.rap.mode != v1alpha1.ModeAuto || d.rap.maxGB != capGB {
			d.setPolicy(v1alpha1.ModeAuto, capGB)
		}
	}
	begin := w.now
	for _, wait := range []time.Duration{time.Minute, 3 * time.Minute, 16 * time.Minute} {
		for range 8 {
			w.round(wait)
		}
	}
	for i := range w.all {
		d := &w.all[i]
		for _, ch := range d.rap.status.Changes {
			isFull := ch.Kind == flavor && d.instance().Status == autopilot.StatusStorageFull // it must be ACTIVE to be completed
			isOld := change.IsPending(ch) && ch.RequestTime.Time.Before(begin.Add(time.Hour))
			w.failIf(isOld && !isFull, "%s is still %s: %s", ch.To, ch.State, describe(d))
		}
		isLow := d.load.usedGB < float64(autopilot.Threshold(d.has.VolumeGB, 90)*d.has.VolumeGB)/100
		w.failIf(!isLow && d.has.VolumeGB < capGB, "the disk has not grown: %s, %+v", describe(d), d.rap.status.Decisions)
		d.load = load{usedGB: firstGB / 2}
	}
	w.round(16 * time.Minute)
	w.round(8 * 24 * time.Hour)
	w.round(time.Minute)
	for i := range w.all {
		d := &w.all[i]
		s := d.rap.status
		for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited, v1alpha1.ConditionContested} {
			w.failIf(meta.IsStatusConditionTrue(s.Conditions, kind), "8 days after the load %s is True: %s", kind, describe(d))
		}
		isWaiting := slices.ContainsFunc(s.Changes, func(ch v1alpha1.Change) bool { return change.IsPending(ch) || ch.State == v1alpha1.StateRefused })
		isHeld := isWaiting || s.Held != nil || s.Deferred != nil || s.ReadOnly != nil || s.OverThresholdSince != nil
		w.failIf(isHeld, "8 days after the load something is held: %+v, read-only %v: %s", s.Held, s.ReadOnly, describe(d))
	}
}

// round lets time pass. Then the cloud ends its job, or the operator begins what is requested, and a check follows.
func (w *world) round(wait time.Duration) {
	w.now = w.now.Add(wait)
	for i := range w.all {
		d := &w.all[i]
		for _, kind := range w.kinds {
			if d.job.isRunning {
				d.end(w.now, autopilot.JobDone, true)
			} else if w.hasRds && d.isOpen(kind) {
				d.begin(w.now, kind, d.spec.Of(kind), *d.wrote.of(kind), true)
			}
		}
		d.setLoad(w.now, d.load)
		w.now = w.now.Add(stepTime)
		w.finish(d, w.prepare(i, d.rap, d.memory, w.now), whole)
	}
}
