// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Walk returns a decision on every alarm of a case, and at most one change to make. A guard that needs a fact reads it
// into the case. Storage is decided before anything is read for a flavor. If storage grows, flavors are left to the next
// check as soon as one needs another read, so that no read delays the growth.
func Walk(ctx context.Context, c *autopilot.Case, read autopilot.Reader) autopilot.Verdict {
	return walkBy(ctx, Table(), c, read)
}

// walkBy walks through these guards.
func walkBy(ctx context.Context, guards []Guard, c *autopilot.Case, read autopilot.Reader) autopilot.Verdict {
	w := walk{c: c, guards: guards, verdict: autopilot.Verdict{Deferred: c.PendingDeferral()}}
	w.read = func(f autopilot.Fact) error { return c.ReadFact(ctx, read, f) }
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
	storage := w.verdict
	w.isGrowing = storage.Intent != nil
	w.decideFlavor(others)
	if w.isLeft {
		return storage
	}
	return w.verdict
}

// walk is one walk through the table.
type walk struct {
	c       *autopilot.Case // with the facts that were read so far
	read    func(autopilot.Fact) error
	guards  []Guard
	verdict autopilot.Verdict

	isGrowing bool // storage is decided, and grows
	isLeft    bool // a flavor needs another read meanwhile
}

// need reads a fact, unless the walk has read it, and enters it into the alarms of a change. It reports whether the fact
// is known.
func (w *walk) need(ch *change, f autopilot.Fact) bool {
	if _, isRead := w.c.Facts[f]; !isRead && w.isGrowing {
		w.isLeft = true
		return false
	}
	err := w.read(f)
	for i, a := range ch.alarms {
		for _, known := range w.c.Alarms {
			if known.Metric == a.Metric && a.DeferredTime.IsZero() { // the status has the evidence of a deferred change
				ch.alarms[i] = known
			}
		}
	}
	return err == nil
}

// needWriter reads which field manager wrote the size or the flavor into the Rds, if there is an Rds.
func (w *walk) needWriter(ch *change) {
	switch {
	case w.c.NoRds:
	case ch.kind == volume:
		w.need(ch, sizeWriter)
	default:
		w.need(ch, flavorWriter)
	}
}

// decideFlavor decides on CPU and memory together, because one change of flavor serves both. An alarm that two larger
// flavors did not help takes no part in that. It passes the guards by itself, and one of them stops it.
func (w *walk) decideFlavor(alarms []autopilot.Alarm) {
	open := w.passPerAlarm(flavor, alarms)
	open = append(open, w.passPerAlarm(flavor, w.c.DueDeferred(open))...)
	if len(open) == 0 && w.verdict.Deferred != nil {
		w.verdict.RequeueIn(w.c.UntilWindowOpens())
	}
	var together, alone []autopilot.Alarm
	for _, a := range open {
		if untilEffective(*w.c, a) > 0 {
			alone = append(alone, a)
		} else {
			together = append(together, a)
		}
	}
	if len(together) > 0 {
		w.passPerChange(change{kind: flavor, alarms: together})
	}
	for _, a := range alone {
		w.passPerChange(change{kind: flavor, alarms: []autopilot.Alarm{a}})
	}
	w.noteRestoredFlavor()
}

// passPerAlarm returns the alarms that pass all guards per alarm, and records decisions on the others.
func (w *walk) passPerAlarm(kind v1alpha1.ChangeKind, alarms []autopilot.Alarm) (open []autopilot.Alarm) {
	for _, a := range alarms {
		ch := change{kind: kind, alarms: []autopilot.Alarm{a}}
		var ans answer
		for _, g := range w.guards {
			if !g.perAlarm || ans.reason != "" || ans.silent {
				break
			}
			ans = w.ask(g, &ch)
		}
		switch a = ch.alarms[0]; {
		case ans.silent:
			w.verdict.RequeueIn(ans.wait)
		case ans.reason != "":
			w.verdict.Add(ans.on(newDecision(*w.c, a)))
		default:
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
		ans := w.ask(g, &ch)
		switch {
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
	w.verdict.Intent = newIntent(*w.c, ch, forAlarm(*w.c, d, ch.alarms[0]))
}

// ask returns a guard's answer.
func (w *walk) ask(g Guard, ch *change) answer {
	ans := g.check(w, ch)
	ans.guard = g.Name
	return ans
}

// act returns the decision to make the change.
func (w *walk) act(ch change) autopilot.Decision {
	if ch.kind == volume {
		return growVolume(*w.c, ch.alarms[0])
	}
	return changeFlavor(*w.c, ch.alarms)
}

// stop records the decisions not to make the change.
func (w *walk) stop(ch change, ans answer) {
	d := newDecision(*w.c, ch.alarms[0])
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
	if !ok || w.verdict.Contest != nil ||
		meta.IsStatusConditionTrue(w.c.Status.Conditions, v1alpha1.ConditionContested) {
		return
	}
	w.needWriter(&change{kind: flavor})
	w.verdict.Contest = &autopilot.Decision{Reason: autopilot.ReasonContested, Message: w.c.ContestText(ours)}
}

// addForEach adds a joint decision as the answer to each alarm.
func (w *walk) addForEach(d autopilot.Decision, alarms []autopilot.Alarm) {
	for _, a := range alarms {
		w.verdict.Add(forAlarm(*w.c, d, a))
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
