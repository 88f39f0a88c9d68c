package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// fly is the round of a database whose autopilot is on: observe, arm, decide, intend, patch.
func (r *round) fly(ctx context.Context) (time.Duration, error) {
	if !slices.Contains(r.rap.Finalizers, v1alpha1.Finalizer) {
		rap, err := r.Cluster.SetFinalizer(ctx, r.rap)
		if err != nil {
			return 0, fmt.Errorf("set the finalizer: %w", err)
		}
		r.rap = rap
	}
	inst, err := r.instance(ctx)
	if err != nil {
		return 0, errors.Join(err, r.notArmed(ctx, autopilot.CloudUnreachable, "The cloud cannot be asked: "+err.Error()))
	}
	c := r.caseOf(inst)
	var ended []v1alpha1.Change
	c.Status, ended = autopilot.Follow(c)
	c.Status.ObservedGeneration = r.rap.Generation
	r.next = c.Status
	if len(ended) > 0 {
		if err := r.write(ctx); err != nil {
			return 0, err
		}
		r.tellEnded(ended)
	}

	r.warnOfRivals()
	armErr := r.arm(ctx, c)
	stateErr := r.readAlarms(ctx, &c)
	c.Status = r.next
	flavorErr := r.readForFlavors(ctx, &c)
	stored := false
	defer func() { r.brake.release(r.key, stored, r.now) }()
	v := autopilot.Decide(c)
	if changesFlavor(v) && !r.brake.take(r.key, r.MaxFlavorChanges, r.changing(), r.now) { // others were faster
		c.FleetBusy = true
		v = autopilot.Decide(c)
	}
	status, news := autopilot.Apply(c, v)
	r.next = status
	autopilot.SetProgressing(&r.next, r.rap.Generation, r.now)
	autopilot.SetLimited(&r.next, v, r.rap.Generation, r.now)
	autopilot.SetContested(&r.next, c, v)
	warnings := autopilot.Warn(c, &r.next)
	// The intent is stored before anything is patched. A conflict here means that this round was decided on old news.
	if err := r.write(ctx); err != nil {
		return 0, err
	}
	stored = changesFlavor(v)
	r.tell(news)
	r.warn(warnings)
	if err := r.patch(ctx, v); err != nil {
		return 0, err
	}
	if errors.Is(armErr, ErrQuota) { // nothing to be gained by haste: the sweep comes back to it
		r.log.Warn("not armed", zap.Error(armErr))
		armErr = nil
	}
	return r.again(v), errors.Join(armErr, stateErr, flavorErr)
}

func changesFlavor(v autopilot.Verdict) bool {
	return v.Intent != nil && v.Intent.Kind == v1alpha1.KindFlavor
}

// instance returns nil where the Rds has no id yet, or the cloud no such instance.
func (r *round) instance(ctx context.Context) (*autopilot.Instance, error) {
	if r.rds.Status.ID == "" {
		return nil, nil
	}
	inst, err := r.Cloud.Instance(ctx, r.rds.Status.ID, r.decidedBy)
	if err == nil && inst == nil { // it may be newer than that listing
		inst, err = r.Cloud.Instance(ctx, r.rds.Status.ID, r.notBefore)
	}
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", r.rds.Status.ID, err)
	}
	return inst, nil
}

func (r *round) caseOf(inst *autopilot.Instance) autopilot.Case {
	return autopilot.Case{
		Now: r.now, Mode: r.mode(), Enabled: true, Spec: r.rap.Spec, Generation: r.rap.Generation, Recheck: r.Recheck,
		Wanted:   autopilot.Wanted{VolumeGB: int(r.rds.Spec.VolumeSize), Flavor: r.rds.Spec.FlavorRef},
		Instance: inst, Shared: inst != nil && len(r.Cluster.RdsByInstance(inst.ID)) > 1, Status: r.next,
	}
}

// readAlarms fills in what Cloud Eye says of the alarms, and the evidence for those that matter. Where Cloud Eye does
// not answer, the signals stand for it.
func (r *round) readAlarms(ctx context.Context, c *autopilot.Case) error {
	states, err := r.alarmStates(ctx)
	if err != nil {
		err = fmt.Errorf("read alarm states: %w", err)
	}
	var wanted []EvidenceOf
	for i := range r.next.Alarms.Rules {
		rule := &r.next.Alarms.Rules[i]
		a := autopilot.Alarm{Metric: rule.Metric, Signal: autopilot.SignalOf(r.rap.Status.Intake, rule.Metric)}
		if s, ok := states[rule.AlarmID]; ok {
			a.State, a.StateTime = s.State, s.Since
			since := metav1.NewMicroTime(s.Since)
			rule.State, rule.StateTime = s.State, &since
		}
		if rule.Metric == v1alpha1.MetricStorage {
			a.Grown = autopilot.Grown(c.Status.Changes, c.Now)
		}
		c.Alarms = append(c.Alarms, a)
		if a.InForce(c.Now) || !a.Grown.IsZero() {
			wanted = append(wanted, EvidenceOf{rule.Metric, rule.Dimension, r.period(rule.Metric), a.News()})
		}
	}
	if len(wanted) == 0 || c.Instance == nil {
		return err
	}
	evidence, readErr := r.Cloud.Evidence(ctx, *c.Instance, wanted)
	if readErr != nil {
		err = errors.Join(err, fmt.Errorf("read evidence: %w", readErr))
	}
	for i := range c.Alarms {
		a := &c.Alarms[i]
		if e, ok := evidence[a.Metric]; ok {
			a.Evidence = e
		} else if readErr != nil {
			a.Evidence = a.Carried(*c)
		}
	}
	return err
}

// alarmStates lists the rules anew where a signal that came since says otherwise: a listing of before it may say ok for
// that reason alone. One that agrees will do, so that a storm of alarms costs one listing.
func (r *round) alarmStates(ctx context.Context) (map[string]AlarmState, error) {
	states, err := r.Cloud.AlarmStates(ctx, r.decidedBy)
	if err != nil {
		return nil, err
	}
	denied := r.decidedBy
	for _, rule := range r.next.Alarms.Rules {
		s := autopilot.SignalOf(r.rap.Status.Intake, rule.Metric)
		if s == nil || s.State == states[rule.AlarmID].State {
			continue
		}
		if at := s.ReceivedTime.Time; at.After(denied) && !at.After(r.now) {
			denied = at
		}
	}
	if !denied.After(r.decidedBy) {
		return states, nil
	}
	return r.Cloud.AlarmStates(ctx, denied)
}

// readForFlavors reads what only a change of flavor depends on.
func (r *round) readForFlavors(ctx context.Context, c *autopilot.Case) error {
	if !c.MayChangeFlavor() {
		return nil
	}
	err := r.readCatalogue(ctx, c)
	if c.Interfered() {
		who, writerErr := r.Cluster.FlavorWriter(ctx, r.rds)
		c.Rival, err = who, errors.Join(err, writerErr)
	}
	c.FleetBusy = r.brake.full(r.key, r.MaxFlavorChanges, r.changing(), r.now)
	return err
}

func (r *round) readCatalogue(ctx context.Context, c *autopilot.Case) error {
	catalogue, err := r.Cloud.Catalogue(ctx, *c.Instance)
	if err != nil {
		return fmt.Errorf("read flavors: %w", err)
	}
	offered, known, err := r.Cloud.ResizeList(ctx, *c.Instance)
	if err != nil {
		return fmt.Errorf("read the resize list: %w", err)
	}
	c.Catalogue, c.Offered, c.OfferedKnown = catalogue, offered, known
	return nil
}

func (r *round) period(m v1alpha1.Metric) int {
	if m == v1alpha1.MetricStorage {
		return int(r.rap.Spec.Storage.Alarm.PeriodSeconds)
	}
	return int(r.rap.Spec.Flavor.Alarm.PeriodSeconds)
}

// patch asks the operator for what is intended, and tells once it is asked for.
func (r *round) patch(ctx context.Context, v autopilot.Verdict) error {
	if v.Intent == nil {
		return nil
	}
	var err error
	if v.Intent.Kind == v1alpha1.KindVolume {
		var to int64
		if to, err = strconv.ParseInt(v.Intent.To, 10, 32); err == nil {
			err = r.Cluster.PatchVolumeSize(ctx, r.rds, int32(to))
		}
	} else {
		err = r.Cluster.PatchFlavorRef(ctx, r.rds, v.Intent.To)
	}
	if err != nil {
		return fmt.Errorf("patch Rds: %w", err)
	}
	for _, d := range v.Decisions {
		if !d.Acts() {
			continue
		}
		r.log.Info("patched", zap.String("metric", string(d.Metric)), zap.String("action", string(d.Action)),
			zap.String("from", d.From), zap.String("to", d.To), zap.String("messageID", d.MessageID))
		if !d.Since.IsZero() && !r.episodeServed(d) {
			r.meters.alarmToPatch.Observe(r.Now().Sub(d.Since).Seconds())
		}
	}
	return nil
}

// episodeServed reports whether the alarm had a change already: the latency is that of the first.
func (r *round) episodeServed(d autopilot.Decision) bool {
	return slices.ContainsFunc(r.rap.Status.Changes, func(ch v1alpha1.Change) bool {
		return slices.Contains(ch.Metrics, d.Metric) && ch.DecisionTime != nil && ch.DecisionTime.After(d.Since)
	})
}

// tellEnded says how changes ended.
func (r *round) tellEnded(ended []v1alpha1.Change) {
	for _, ch := range ended {
		r.log.Info("change ended", zap.String("kind", string(ch.Kind)), zap.String("by", string(ch.By)),
			zap.String("from", ch.From), zap.String("to", ch.To), zap.String("outcome", string(ch.Outcome)))
		r.Cluster.Event(r.rds, r.rap, Event{
			Warning: ch.Outcome == v1alpha1.OutcomeLost, Change: true, Reason: string(ch.Outcome), Action: string(ch.Kind),
			Note: autopilot.Ended(ch),
		})
	}
}

// tell says what was decided: event, metric and log line with one reason code.
func (r *round) tell(news []autopilot.Decision) {
	for _, d := range news {
		r.meters.decisions.WithLabelValues(string(d.Metric), string(d.Action), string(d.Reason)).Inc()
		r.log.Info("decision", zap.String("metric", string(d.Metric)), zap.String("action", string(d.Action)),
			zap.String("reason", string(d.Reason)), zap.String("from", d.From), zap.String("to", d.To),
			zap.String("messageID", d.MessageID), zap.String("message", d.Message))
		e := Event{Warning: d.Reason.Loud(), Reason: string(d.Reason), Action: string(d.Action), Note: d.Message}
		if d.Acts() {
			e.Reason, e.Change = string(d.Action), true
		}
		r.Cluster.Event(r.rds, r.rap, e)
	}
}

// warn says what people should know of a volume before it is too late; the status knows by now that they were told.
func (r *round) warn(warnings []autopilot.Warning) {
	for _, w := range warnings {
		r.log.Warn("volume", zap.String("reason", string(w.Reason)), zap.String("message", w.Message))
		r.Cluster.Event(r.rds, r.rap, Event{Warning: true, Reason: string(w.Reason), Action: eventObserve, Note: w.Message})
	}
}

// again is when to look at this database next, unless an event comes first.
func (r *round) again(v autopilot.Verdict) time.Duration {
	soon := func(d time.Duration) time.Duration {
		if v.Again > 0 {
			return min(v.Again, d)
		}
		return d
	}
	inst := r.next.Instance
	switch {
	case r.next.Pending != nil, r.next.Overtaken != nil, inst == nil,
		inst.Status != autopilot.StatusActive && inst.Status != autopilot.StatusStorageFull, // a full one is not busy, and may be full for days
		r.next.Alarms.Subscription == v1alpha1.SubscriptionPending:
		return soon(r.Recheck)
	}
	return v.Again
}
