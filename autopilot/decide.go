// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// stallAfter is when a requested change counts as stalled. The cloud usually needs 5 to 15 minutes.
	stallAfter = 15 * time.Minute
	// flavorFirst is how long a pending flavor change delays storage. After that, a full disk is the greater risk.
	flavorFirst = 10 * time.Minute
	// soldOutRequeue is when unavailable flavors are checked again: as soon as the cached catalogue has expired.
	soldOutRequeue = 5 * time.Minute
	// dataRequeue is when missing data is checked again. Cloud Eye has one raw value a minute.
	dataRequeue = time.Minute
)

// Case holds everything that a decision depends on. Functions that take a Case do not modify it.
type Case struct {
	Now     time.Time
	Mode    v1alpha1.Mode // the stricter of the policy's and --mode
	Enabled bool          // false if spec.autopilot of the Rds is false, or one of both objects is being deleted
	Spec    v1alpha1.Spec
	// Generation is that of the spec. Contests and ineffective changes are forgotten when it changes.
	Generation int64
	Wanted     Wanted        // what the spec of the Rds requests
	Recheck    time.Duration // the next check while an instance is busy or a change is pending

	Instance   *Instance // nil if it is not known, or not in the cloud
	ClaimedBy  string    // the object that manages this instance, as NAMESPACE/NAME; empty if this one does
	NotAllowed string    // why --allow-apply or --allowed-instances does not allow it; empty if they do
	// NoRds means that there is no Rds to patch. Wanted is what the instance has.
	NoRds bool
	// Jobs holds the cloud's jobs for intents by id, as far as they could be read. The instance was read after them.
	Jobs map[string]Job

	Alarms []Alarm
	Status v1alpha1.Status // as FollowUp returned it

	// FleetBusy means that --max-flavor-changes other flavors are changing in the cluster.
	FleetBusy bool
	// OtherWriter is the field manager that replaced our size or flavor in the Rds; empty if it is not known.
	OtherWriter string

	// Load holds the averages of LoadMetrics in the last LoadSpan, nil if they were not read.
	Load Series

	Catalogue    []flavors.Flavor // nil if it could not be read
	Offered      []string         // codes in the instance's resize list
	OfferedKnown bool
}

// Wanted is the size and flavor that the spec of an Rds requests.
type Wanted struct {
	VolumeGB int
	Flavor   string
}

// Matches reports whether the spec already requests the intent's size or flavor.
func (w Wanted) Matches(i v1alpha1.Intent) bool {
	if i.Kind == v1alpha1.KindFlavor {
		return w.Flavor == i.To
	}
	return w.VolumeGB == gigabytes(i.To)
}

// Includes reports whether the spec already requests the intent's flavor, or at least its size.
func (w Wanted) Includes(i v1alpha1.Intent) bool {
	return w.Matches(i) || i.Kind == v1alpha1.KindVolume && w.VolumeGB >= gigabytes(i.To)
}

// Decision is the answer to one alarm: an action, or none, with the reason.
type Decision struct {
	Time     time.Time // when it is taken
	Metric   v1alpha1.Metric
	Action   Action
	Reason   Reason
	From, To string // GB or flavor codes
	Evidence Evidence
	// MessageID is the id of the message that started the check, if one did. Since is when the alarm began.
	MessageID    string
	Since        time.Time
	Message      string        // one sentence for people
	RequeueAfter time.Duration // 0 if an event starts the next check
	Capped       bool          // the policy allows less than the alarm needs
}

// Acts reports whether the decision changes the Rds.
func (d Decision) Acts() bool { return d.Action != ActionNone && d.Reason == ReasonAlarmInForce }

// Verdict holds the decisions on all alarms of a Case.
type Verdict struct {
	Decisions    []Decision
	Intent       *v1alpha1.Intent   // the change to make, or nil
	RequeueAfter time.Duration      // 0 if an event starts the next check
	Deferred     *v1alpha1.Deferred // the change that waits for the window from now on
	Contest      *Decision          // set if another writer reverts our change
}

// Decide returns a decision on every alarm of a case, and at most one change to make. It is a pure function: it does
// not modify the case and performs no I/O. The guards are checked in the order of docs/decisions.md.
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
			v.requeueAfter(d.RequeueAfter)
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
		if v.Deferred != nil {
			v.requeueAfter(c.untilWindowOpens())
		}
		return v
	}
	effective, ineffective := c.splitByEffect(flavor)
	d := c.decideFlavor(effective, v.Intent != nil)
	if d.Reason == ReasonOutsideWindow {
		v.Deferred = c.deferToWindow(effective)
	}
	if v.Contest == nil && (d.Reason == ReasonContested || d.Reason == ReasonRolledBack) {
		v.Contest = &d
	}
	for _, a := range effective {
		v.add(d.forAlarm(a))
	}
	for _, a := range ineffective { // guards before NoEffect apply to all alarms, later ones only to the others
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

// splitByEffect separates the alarms that a larger flavor may help from those that two larger flavors did not help. If
// it would help none, all alarms are returned as effective, and the decision on them is NoEffect.
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
	v.requeueAfter(d.RequeueAfter)
}

func (v *Verdict) requeueAfter(after time.Duration) {
	if after > 0 && (v.RequeueAfter == 0 || after < v.RequeueAfter) {
		v.RequeueAfter = after
	}
}

// forAlarm returns a joint decision as the answer to one of its alarms.
func (d Decision) forAlarm(a Alarm) Decision {
	d.Metric, d.Evidence, d.MessageID, d.Since = a.Metric, a.Evidence, a.messageID(), a.since()
	return d
}

// value returns the measured percentage with one digit, or an empty text without evidence.
func (d Decision) value() string {
	if !d.Evidence.Present() {
		return ""
	}
	return strconv.FormatFloat(d.Evidence.Percent, 'f', 1, 64)
}

// intent returns the change as it is recorded before it is requested. Of an earlier intent that has not started, it
// keeps the time of the first decision and the refusals.
func (c Case) intent(kind v1alpha1.ChangeKind, d Decision, alarms ...Alarm) *v1alpha1.Intent {
	i := &v1alpha1.Intent{
		Kind: kind, From: d.From, To: d.To, ValuePercent: d.value(),
		EvidenceTime: *micro(d.Evidence.Time), DecisionTime: *micro(c.Now), Generation: c.Generation, Message: d.Message,
	}
	if kind == v1alpha1.KindFlavor {
		i.Load = LoadOf(c.Load, c.Now)
	}
	for _, a := range alarms {
		i.Metrics = append(i.Metrics, a.Metric)
	}
	if p := c.unstarted(kind); p != nil {
		i.DecisionTime, i.Refusal = p.DecisionTime, p.Refusal.DeepCopy()
		if p.To == i.To {
			i.AskedTime = p.AskedTime
		}
	}
	return i
}

// MayChangeFlavor reports whether an alarm or a deferred change could lead to another flavor. Only then does the caller
// need the catalogue.
func (c Case) MayChangeFlavor() bool {
	if c.Instance == nil {
		return false
	}
	for _, a := range c.Alarms {
		if helpedBy(a.Metric) == v1alpha1.KindFlavor && a.InForce(c.Now) {
			return true
		}
	}
	return len(c.dueDeferred(nil)) > 0
}

// ProposesFlavor reports whether an alarm needs another flavor and, as far as is known, no guard prevents the
// change. Only then does the caller need the instance's own resize list and a slot among the flavors that change in the
// cluster.
func (c Case) ProposesFlavor() bool {
	return slices.ContainsFunc(Decide(c).Decisions, func(d Decision) bool { return d.Action == ActionChangeFlavor })
}
