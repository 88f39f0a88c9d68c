// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// errNotRead is the error of a fact that a reader was asked for and did not set.
var errNotRead = errors.New("the fact was not read")

// Walk decides on a case and reads on the way what the guards need. read must set each of the facts by SetFact, whether
// it is known or not. A fact that it leaves out counts as unreadable, so the walk always ends.
func Walk(ctx context.Context, c *autopilot.Case,
	read func(ctx context.Context, c *autopilot.Case, facts []autopilot.Fact)) autopilot.Verdict {
	for {
		v, needs := Decide(*c)
		if !slices.ContainsFunc(needs, func(f autopilot.Fact) bool { return !c.Has(f) }) {
			return v // nothing is needed, or a guard's row lacks a fact, which tests prevent: then nothing is decided
		}
		read(ctx, c, needs)
		for _, f := range needs {
			if !c.Has(f) {
				c.SetFact(f, errNotRead)
			}
		}
	}
}

// Decide returns a decision on every alarm of a case, and at most one change to make. If a guard needs facts that were
// not read, it returns these facts instead; then the verdict is empty. Storage is decided before any fact of a flavor
// is needed. If storage grows, an alarm whose facts are missing is left to the next check, so that no read delays the
// growth. Decide is a pure function.
func Decide(c autopilot.Case) (v autopilot.Verdict, needs []autopilot.Fact) {
	return decideBy(Table(), c)
}

// decideBy decides on a case by these guards.
func decideBy(guards []Guard, c autopilot.Case) (v autopilot.Verdict, needs []autopilot.Fact) {
	w := walk{c: c, guards: guards, verdict: autopilot.Verdict{Deferred: c.PendingDeferral()}}
	var others []autopilot.Alarm
	for _, a := range c.Alarms {
		if autopilot.HelpedBy(a.Metric) != volume {
			others = append(others, a)
			continue
		}
		for _, open := range w.passPerAlarm(volume, []autopilot.Alarm{a}) {
			w.passPerChange(change{kind: volume, alarms: []autopilot.Alarm{open}})
		}
	}
	if len(w.needs) > 0 {
		return autopilot.Verdict{}, w.needs
	}
	storage := w.verdict
	w.decideFlavor(others)
	switch {
	case len(w.needs) > 0 && storage.Intent != nil:
		return storage, nil
	case len(w.needs) > 0:
		return autopilot.Verdict{}, w.needs
	}
	return w.verdict, nil
}

// walk is one walk through the table.
type walk struct {
	c       autopilot.Case
	guards  []Guard
	verdict autopilot.Verdict
	needs   []autopilot.Fact
}

// decideFlavor decides on CPU and memory together, because one change of flavor serves both. An alarm that two larger
// flavors did not help takes no part in that. It passes the guards by itself, and one of them stops it.
func (w *walk) decideFlavor(alarms []autopilot.Alarm) {
	open := w.passPerAlarm(flavor, alarms)
	open = append(open, w.passPerAlarm(flavor, w.c.DueDeferred(open))...)
	if len(w.needs) > 0 {
		return
	}
	if len(open) == 0 && w.verdict.Deferred != nil {
		w.verdict.RequeueIn(w.c.UntilWindowOpens())
	}
	var together, alone []autopilot.Alarm
	for _, a := range open {
		if untilEffective(w.c, a) > 0 {
			alone = append(alone, a)
		} else {
			together = append(together, a)
		}
	}
	behind := w.verdict.Intent != nil
	if len(together) > 0 {
		w.passPerChange(change{kind: flavor, alarms: together, behindGrowth: behind})
	}
	for _, a := range alone {
		w.passPerChange(change{kind: flavor, alarms: []autopilot.Alarm{a}, behindGrowth: behind})
	}
	w.noteRestoredFlavor()
}

// passPerAlarm returns the alarms that pass all guards per alarm, and records decisions on the others.
func (w *walk) passPerAlarm(kind v1alpha1.ChangeKind, alarms []autopilot.Alarm) (open []autopilot.Alarm) {
	for _, a := range alarms {
		stopped := false
		for _, g := range w.guards {
			if !g.perAlarm || stopped {
				break
			}
			ans := w.ask(g, change{kind: kind, alarms: []autopilot.Alarm{a}})
			switch {
			case len(ans.needs) > 0:
				stopped = true
			case ans.silent:
				w.verdict.RequeueIn(ans.wait)
				stopped = true
			case ans.reason != "":
				w.verdict.Add(ans.on(newDecision(w.c, a)))
				stopped = true
			}
		}
		if !stopped {
			open = append(open, a)
		}
	}
	return open
}

// passPerChange asks the other guards about the change that serves all these alarms. If none objects, the verdict makes
// the change.
func (w *walk) passPerChange(ch change) {
	for _, g := range w.guards {
		if g.perAlarm || !g.isFor(ch.kind) {
			continue
		}
		ans := w.ask(g, ch)
		switch {
		case len(ans.needs) > 0:
			return
		case ans.reason == autopilot.ReasonRecommend:
			d := w.act(ch)
			d.Reason, d.Guard = autopilot.ReasonRecommend, ans.guard
			d.Message += " (recommended only)"
			w.addForEach(d, ch.alarms)
			return
		case ans.reason != "":
			w.stop(ch, ans)
			return
		}
	}
	d := w.act(ch)
	w.addForEach(d, ch.alarms)
	w.verdict.Intent = newIntent(w.c, ch, forAlarm(w.c, d, ch.alarms[0]))
}

// ask returns a guard's answer. The guard sees only the facts that its row declares.
func (w *walk) ask(g Guard, ch change) answer {
	alarms := make([]autopilot.Alarm, 0, len(ch.alarms))
	for _, a := range ch.alarms {
		alarms = append(alarms, a.Only(g.Facts))
	}
	ch.alarms = alarms
	ans := g.check(w.c.Only(g.Facts), ch)
	ans.guard = g.Name
	for _, f := range ans.needs {
		if !slices.Contains(w.needs, f) {
			w.needs = append(w.needs, f)
		}
	}
	return ans
}

// act returns the decision to make the change.
func (w *walk) act(ch change) autopilot.Decision {
	if ch.kind == volume {
		return growVolume(w.c, ch.alarms[0])
	}
	return changeFlavor(w.c, ch.alarms)
}

// stop records the decisions not to make the change.
func (w *walk) stop(ch change, ans answer) {
	d := newDecision(w.c, ch.alarms[0])
	d.From = w.c.Instance.Flavor
	if ch.kind == volume {
		d.From = fmt.Sprint(w.c.Instance.VolumeGB)
	}
	d = ans.on(d)
	w.addForEach(d, ch.alarms)
	switch d.Reason {
	case autopilot.ReasonOutsideWindow:
		w.verdict.Deferred = w.c.DeferToWindow(ch.alarms)
	case autopilot.ReasonContested, autopilot.ReasonRolledBack:
		if w.verdict.Contest == nil {
			w.verdict.Contest = &d
		}
	}
}

// noteRestoredFlavor reports that another writer has restored the flavor from before our change, although no alarm asks
// for a flavor now: the operator makes the database smaller.
func (w *walk) noteRestoredFlavor() {
	ours, ok := w.c.RestoredFlavor()
	if !ok || w.verdict.Contest != nil || len(w.needs) > 0 ||
		meta.IsStatusConditionTrue(w.c.Status.Conditions, v1alpha1.ConditionContested) {
		return
	}
	if !w.c.NoRds && !w.c.Has(flavorWriter) {
		w.needs = append(w.needs, flavorWriter)
		return
	}
	w.verdict.Contest = &autopilot.Decision{Reason: autopilot.ReasonContested, Message: w.c.ContestText(ours)}
}

// addForEach adds a joint decision as the answer to each alarm.
func (w *walk) addForEach(d autopilot.Decision, alarms []autopilot.Alarm) {
	for _, a := range alarms {
		w.verdict.Add(forAlarm(w.c, d, a))
	}
}

// no returns the answer that the change must not be made, and when to check again.
func no(r autopilot.Reason, wait time.Duration, format string, args ...any) answer {
	return answer{reason: r, wait: wait, text: fmt.Sprintf(format, args...)}
}

// silence returns the answer that the alarm needs no decision now, and when to check again.
func silence(wait time.Duration) answer { return answer{silent: true, wait: wait} }

// on returns the decision with the answer.
func (a answer) on(d autopilot.Decision) autopilot.Decision {
	d = d.Decline(a.reason, a.wait, "%s", a.text)
	d.Capped, d.Guard = a.capped, a.guard
	return d
}

// newDecision returns a decision on an alarm without a reason. Its storage percentage refers to the present size of the
// volume.
func newDecision(c autopilot.Case, a autopilot.Alarm) autopilot.Decision {
	d := forAlarm(c, autopilot.Decision{Time: c.Now, Action: autopilot.ActionNone}, a)
	if autopilot.Row(a.Metric).InGB() && c.Instance != nil && c.Instance.VolumeGB > 0 && a.Evidence.Present() {
		d.Evidence.Percent = 100 * a.Evidence.UsedGB / float64(c.Instance.VolumeGB)
	}
	return d
}

// forAlarm returns a joint decision as the answer to one of its alarms. The percentage of storage stays that of the
// present size. If no alarm is in force, the decision counts from when the database became read-only.
func forAlarm(c autopilot.Case, d autopilot.Decision, a autopilot.Alarm) autopilot.Decision {
	percent, isSame := d.Evidence.Percent, d.Metric == a.Metric
	d.Metric, d.Evidence, d.MessageID, d.Since = a.Metric, a.Evidence, a.MessageID(), a.Since()
	if !a.InForce(c.Now) && a.AlarmOverdueSince.IsZero() && c.IsReadOnly(a) {
		d.Since = c.ReadOnly(a.Evidence).SinceTime.Time
	}
	if isSame {
		d.Evidence.Percent = percent
	}
	return d
}

// newIntent returns the change as it is recorded before it is requested. Of an earlier intent that has not started, it
// keeps the time of the first decision and the refusals.
func newIntent(c autopilot.Case, ch change, d autopilot.Decision) *v1alpha1.Intent {
	i := &v1alpha1.Intent{
		Kind: ch.kind, From: d.From, To: d.To, ValuePercent: d.ValueText(), Message: d.Message, Generation: c.Generation,
		EvidenceTime: *autopilot.Micro(d.Evidence.Time), DecisionTime: *autopilot.Micro(c.Now),
	}
	for _, a := range ch.alarms {
		i.Metrics = append(i.Metrics, a.Metric)
	}
	if p := c.UnstartedIntent(ch.kind); p != nil {
		i.DecisionTime, i.Refusal = p.DecisionTime, p.Refusal.DeepCopy()
		if p.To == i.To {
			i.AskedTime = p.AskedTime
		}
	}
	return i
}
