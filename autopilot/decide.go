// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// When to look again where no event brings it up.
const (
	stallAfter   = 15 * time.Minute // a pending change is called stalled
	flavorFirst  = 10 * time.Minute // a pending flavor change holds storage back for this long
	soldOutAgain = 5 * time.Minute  // as long as the catalogue is cached
	dataAgain    = time.Minute      // raw data comes once a minute
)

// Case is everything a decision depends on.
type Case struct {
	Now     time.Time
	Mode    v1alpha1.Mode // the policy's or the process's, whichever allows less
	Enabled bool          // spec.autopilot of the Rds is not false, and neither object is being deleted
	Spec    v1alpha1.Spec
	// Generation of the spec: some verdicts on the past end with a new one.
	Generation int64
	Wanted     Wanted        // what the Rds asks for
	Recheck    time.Duration // the next look while an instance is busy or a change is pending

	Instance *Instance // nil: not known, or not in the cloud
	Shared   bool      // another Rds, or an autopilot without one, has the same instance
	// NoRds: there is no Rds to patch. An intent is asked for once it is recorded, and Wanted is what the instance has.
	NoRds bool
	// Jobs are the cloud's jobs for intents, by id, as far as they could be read. The instance was read after them.
	Jobs map[string]Job

	Alarms []Alarm
	Status v1alpha1.Status // what was seen and done before; see FollowUp

	// FleetBusy: as many flavors as may be are changing elsewhere in the cluster.
	FleetBusy bool
	// Rival is the writer of the size or flavor that the Rds asks for in place of ours, where that is known.
	Rival string

	Catalogue    []flavors.Flavor // nil: could not be read
	Offered      []string         // codes in the instance's resize list
	OfferedKnown bool
}

// Wanted is what the spec of an Rds asks for.
type Wanted struct {
	VolumeGB int
	Flavor   string
}

// Asks reports whether the Rds asks for what an intent is about.
func (w Wanted) Asks(i v1alpha1.Intent) bool {
	if i.Kind == v1alpha1.KindFlavor {
		return w.Flavor == i.To
	}
	return w.VolumeGB == gigabytes(i.To)
}

// Decision is the answer to one alarm.
type Decision struct {
	Metric   v1alpha1.Metric
	Action   Action
	Reason   Reason
	From, To string // GB or flavor codes
	Evidence Evidence
	// MessageID of the signal that made us look, if one did; Since is when the alarm began.
	MessageID string
	Since     time.Time
	Message   string // one sentence a person understands
	Again     time.Duration
	Cut       bool // the policy allows less than the alarm asks for
}

// Acts reports whether the Rds is to be patched.
func (d Decision) Acts() bool { return d.Action != ActionNone && d.Reason == ReasonAlarmInForce }

// Verdict is the answer to a Case.
type Verdict struct {
	Decisions []Decision
	Intent    *v1alpha1.Intent // what to do, or nil
	Again     time.Duration    // when to look again; 0 where an event brings it up
	Ladder    []flavors.Candidate
	Deferred  *v1alpha1.Deferred // the change that waits for the window, after this
	Contest   *Decision          // somebody undoes what we did; nil: nobody
}

// Decide answers every alarm of a case. It is a pure function.
func Decide(c Case) Verdict {
	v := Verdict{Deferred: c.pendingDeferral()}
	var flavor []Alarm
	for _, a := range c.Alarms {
		d, open := c.gate(a)
		switch {
		case !open:
			if d.Reason != "" {
				v.add(d)
			}
			v.again(d.Again)
		case helpedBy(a.Metric) == v1alpha1.KindVolume:
			d = c.decideStorage(a)
			v.add(d)
			switch {
			case d.Acts():
				v.Intent = c.intent(v1alpha1.KindVolume, d, a)
			case d.Reason == ReasonContested:
				v.Contest = &d
			}
		default:
			flavor = append(flavor, a)
		}
	}
	flavor = append(flavor, c.dueDeferred(flavor)...)
	if len(flavor) == 0 {
		v.again(c.untilDeferred(v.Deferred))
		return v
	}
	effective, ineffective := c.splitByEffect(flavor)
	d, ladder := c.decideFlavor(effective, v.Intent != nil)
	v.Ladder = ladder
	if d.Reason == ReasonOutsideWindow {
		v.Deferred = c.deferToWindow(effective)
	}
	if v.Contest == nil && (d.Reason == ReasonContested || d.Reason == ReasonRolledBack) {
		v.Contest = &d
	}
	for _, a := range effective {
		v.add(d.forAlarm(a))
	}
	for _, a := range ineffective { // the guards before NoEffect hold for all alarms, those behind it only for the others
		if d.Action == ActionNone && d.Reason != ReasonOutsideWindow && d.Reason != ReasonFleetBrake {
			v.add(d.forAlarm(a))
		} else if held, ok := c.checkEffect(a, c.ourFlavorChanges()); ok {
			v.add(held)
		}
	}
	if d.Acts() {
		v.Intent = c.intent(v1alpha1.KindFlavor, d.forAlarm(effective[0]), effective...)
	}
	return v
}

// splitByEffect separates the alarms that a larger flavor may help from those that it did not help twice. Where it helped
// none, all of them are decided on, and the answer is NoEffect.
func (c Case) splitByEffect(alarms []Alarm) (effective, ineffective []Alarm) {
	for _, a := range alarms {
		if _, held := c.checkEffect(a, c.ourFlavorChanges()); held {
			ineffective = append(ineffective, a)
		} else {
			effective = append(effective, a)
		}
	}
	if len(effective) == 0 {
		return ineffective, nil
	}
	return effective, ineffective
}

func (v *Verdict) add(d Decision) {
	v.Decisions = append(v.Decisions, d)
	v.again(d.Again)
}

func (v *Verdict) again(after time.Duration) {
	if after > 0 && (v.Again == 0 || after < v.Again) {
		v.Again = after
	}
}

// forAlarm is a joint decision as the answer to one of its alarms.
func (d Decision) forAlarm(a Alarm) Decision {
	d.Metric, d.Evidence, d.MessageID, d.Since = a.Metric, a.Evidence, a.messageID(), a.since()
	return d
}

func (d Decision) value() string {
	if !d.Evidence.Present() {
		return ""
	}
	return strconv.FormatFloat(d.Evidence.Percent, 'f', 1, 64)
}

// intent is the decision as it is recorded before the Rds is patched. One that was recorded and never patched keeps
// its time: it is the same change, decided anew.
func (c Case) intent(kind v1alpha1.ChangeKind, d Decision, alarms ...Alarm) *v1alpha1.Intent {
	i := &v1alpha1.Intent{
		Kind: kind, From: d.From, To: d.To, ValuePercent: d.value(),
		EvidenceTime: *micro(d.Evidence.Time), DecisionTime: *micro(c.Now), Generation: c.Generation, Message: d.Message,
	}
	for _, a := range alarms {
		i.Metrics = append(i.Metrics, a.Metric)
	}
	if p := c.unpatched(kind); p != nil {
		i.DecisionTime, i.Refusal = p.DecisionTime, p.Refusal.DeepCopy()
		if i.Refusal != nil {
			i.Refusal.NextTime = nil // decided anew: only how often it was refused still counts
		}
	}
	return i
}

// MayChangeFlavor reports whether any alarm or deferred change could ask for another flavor: only then the catalogue is needed.
func (c Case) MayChangeFlavor() bool {
	if c.Instance == nil {
		return false
	}
	for _, a := range c.Alarms {
		if helpedBy(a.Metric) == v1alpha1.KindFlavor && a.InForce(c.Now) {
			return true
		}
	}
	return len(c.dueDeferred(nil)) > 0 || slices.ContainsFunc(c.Status.Intents(), func(i *v1alpha1.Intent) bool {
		return c.Spec.Apply == v1alpha1.ApplyCloud && i.Kind == v1alpha1.KindFlavor && i.JobID == "" && i.Generation != c.Generation
	})
}
