// SPDX-License-Identifier: Apache-2.0

// Package decide turns a case into decisions. Table has all guards in their order, and Walk walks through it. The
// first guard that objects names the reason. A guard that needs a fact reads it, through the reader that the caller
// gives. So nothing is read that no decision needs, and the loop and the dry run differ only in how they read.
//
// The package is pure. It must not know how facts are read, how decisions are stored, or what happened after them.
package decide

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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

func walkBy(ctx context.Context, guards []Guard, c *autopilot.Case, read autopilot.Reader) autopilot.Verdict {
	w := walk{c: c, guards: guards, verdict: autopilot.Verdict{Deferred: c.PendingDeferral()}}
	w.read = func(f autopilot.Fact) error { return c.ReadFact(ctx, read, f) }
	var others []autopilot.Alarm
	for _, a := range c.Alarms {
		if autopilot.HelpedBy(a.Metric) != volume {
			others = append(others, a)
			continue
		}
		w.pass(volume, w.passFirst(volume, []autopilot.Alarm{a}))
	}
	storage := w.verdict
	w.isGrowing = storage.Change != nil
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
func (w *walk) need(ch *proposal, f autopilot.Fact) bool {
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
func (w *walk) needWriter(ch *proposal) {
	switch {
	case w.c.NoRds:
	case ch.kind == volume:
		w.need(ch, sizeWriter)
	default:
		w.need(ch, flavorWriter)
	}
}

// decideFlavor decides on CPU and memory together, because one change of flavor serves both.
func (w *walk) decideFlavor(alarms []autopilot.Alarm) {
	open := w.passFirst(flavor, alarms)
	open = append(open, w.passFirst(flavor, w.c.DueDeferred(open))...)
	if len(open) == 0 && w.verdict.Deferred != nil {
		w.verdict.RequeueIn(w.c.UntilWindowOpens())
	}
	w.pass(flavor, open)
	w.noteContest()
}

// first returns how many guards at the beginning of the table judge each alarm by itself.
func (w *walk) first() int {
	return slices.IndexFunc(w.guards, func(g Guard) bool { return !g.perAlarm })
}

// passFirst returns the alarms that pass the first guards, and records decisions on the others.
func (w *walk) passFirst(kind v1alpha1.ChangeKind, alarms []autopilot.Alarm) []autopilot.Alarm {
	for _, g := range w.guards[:w.first()] {
		alarms = w.filter(g, kind, alarms)
	}
	return alarms
}

// filter returns the alarms that pass a guard, and records decisions on the others.
func (w *walk) filter(g Guard, kind v1alpha1.ChangeKind, alarms []autopilot.Alarm) (open []autopilot.Alarm) {
	for _, a := range alarms {
		ch := proposal{kind: kind, alarms: []autopilot.Alarm{a}}
		ans := w.ask(g, &ch)
		switch a = ch.alarms[0]; {
		case ans.silent:
			w.verdict.RequeueIn(ans.wait)
		case ans.reason != "":
			w.stop(ch, ans)
		default:
			open = append(open, a)
		}
	}
	return open
}

// pass asks the other guards about the change that serves all these alarms. If none objects, the verdict makes the
// change.
func (w *walk) pass(kind v1alpha1.ChangeKind, alarms []autopilot.Alarm) {
	ch := proposal{kind: kind, alarms: alarms}
	for _, g := range w.guards[w.first():] {
		if len(ch.alarms) == 0 {
			return
		}
		if !g.isFor(kind) {
			continue
		}
		if g.perAlarm {
			ch.alarms = w.filter(g, kind, ch.alarms)
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
	w.verdict.Change = newChange(*w.c, ch, forAlarm(*w.c, d, ch.alarms[0]))
}

func (w *walk) ask(g Guard, ch *proposal) answer {
	ans := g.check(w, ch)
	ans.guard = g.Name
	return ans
}

func (w *walk) act(ch proposal) autopilot.Decision {
	if ch.kind == volume {
		return growVolume(*w.c, ch.alarms[0])
	}
	return changeFlavor(*w.c, ch.alarms)
}

func (w *walk) stop(ch proposal, ans answer) {
	d := ans.on(newDecision(*w.c, ch.alarms[0]))
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

// noteContest reports that another writer has replaced our flavor by a smaller one, although no alarm asks for a flavor
// now: the operator makes the database smaller.
func (w *walk) noteContest() {
	if w.c.NeedsCatalogue() {
		w.need(&proposal{kind: flavor}, catalogue)
	}
	isNews := w.verdict.Contest == nil && !meta.IsStatusConditionTrue(w.c.Status.Conditions, v1alpha1.ConditionContested)
	if _, ours, ok := w.c.Contest(); ok && isNews {
		w.needWriter(&proposal{kind: flavor})
		w.verdict.Contest = &autopilot.Decision{Reason: autopilot.ReasonContested, Message: w.c.ContestText(ours)}
	}
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

func (a answer) on(d autopilot.Decision) autopilot.Decision {
	d = d.Decline(a.reason, a.wait, "%s", a.text)
	d.Capped, d.Guard = a.capped, a.guard
	return d
}

// newDecision returns a decision on an alarm without a reason. Its storage percentage refers to the present size of the
// volume.
func newDecision(c autopilot.Case, a autopilot.Alarm) autopilot.Decision {
	d := forAlarm(c, autopilot.Decision{Time: c.Now, Action: autopilot.ActionNone}, a)
	switch {
	case c.Instance == nil:
	case autopilot.HelpedBy(a.Metric) == flavor:
		d.From = c.Instance.Flavor
	default:
		d.From = strconv.Itoa(c.Instance.VolumeGB)
		if c.Instance.VolumeGB > 0 && a.Evidence.Present() {
			d.Evidence.Percent = 100 * a.Evidence.UsedGB / float64(c.Instance.VolumeGB)
		}
	}
	return d
}

// forAlarm returns a joint decision as the answer to one of its alarms. The percentage of storage stays that of the
// present size. If no alarm is in force, the decision counts from when the database became read-only.
func forAlarm(c autopilot.Case, d autopilot.Decision, a autopilot.Alarm) autopilot.Decision {
	percent, isSame := d.Evidence.Percent, d.Metric == a.Metric
	d.Metric, d.Evidence, d.MessageID, d.Since = a.Metric, a.Evidence, a.MessageID(), a.Since(c)
	if !a.InForce(c.Now) && c.OverdueSince(a).IsZero() && c.IsReadOnly(a) {
		d.Since = c.ReadOnly(a.Evidence).SinceTime.Time
	}
	if isSame {
		d.Evidence.Percent = percent
	}
	return d
}

// newChange returns the change to request. It has no state yet: record.Outcome stores it.
func newChange(c autopilot.Case, ch proposal, d autopilot.Decision) *v1alpha1.Change {
	next := &v1alpha1.Change{
		Kind: ch.kind, By: v1alpha1.ByAutopilot, From: d.From, To: d.To, ValuePercent: d.ValueText(),
		Generation: c.Generation, EvidenceTime: autopilot.Micro(d.Evidence.Time),
	}
	for i, a := range ch.alarms {
		next.Metrics = append(next.Metrics, a.Metric)
		if i > 0 {
			next.MorePercents = append(next.MorePercents, forAlarm(c, d, a).ValueText())
		}
	}
	return next
}
