package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// instance returns nil where the Rds has no id yet, or the cloud no such instance.
func (r *round) instance(ctx context.Context) (*autopilot.Instance, error) {
	if r.rds.Status.ID == "" {
		return nil, nil
	}
	inst, err := r.Cloud.Instance(ctx, r.rds.Status.ID, r.notBefore)
	if err == nil && inst == nil { // it may be newer than that listing
		inst, err = r.Cloud.Instance(ctx, r.rds.Status.ID, r.now)
	}
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", r.rds.Status.ID, err)
	}
	if inst == nil || inst.SizesKnown() {
		return inst, nil
	}
	catalogue, err := r.Cloud.Catalogue(ctx, *inst)
	if err != nil { // storage does not depend on it, and a flavor is not changed without
		r.log.Warn("read how large the flavor is", zap.String("flavor", inst.Flavor), zap.Error(err))
		return inst, nil
	}
	sized := inst.WithSizes(catalogue)
	return &sized, nil
}

func (r *round) caseOf(inst *autopilot.Instance) autopilot.Case {
	return autopilot.Case{
		Now: r.now, Mode: r.mode(), Enabled: true, Spec: r.rap.Spec, Generation: r.rap.Generation, Recheck: r.Recheck,
		Wanted:   wanted(r.rds),
		Instance: inst, Shared: inst != nil && len(r.Cluster.RdsByInstance(inst.ID)) > 1, Status: r.next,
	}
}

// wanted is what an Rds asks for.
func wanted(rds *otcv1.Rds) autopilot.Wanted {
	return autopilot.Wanted{VolumeGB: int(rds.Spec.VolumeSize), Flavor: rds.Spec.FlavorRef}
}

// readAlarms fills in what Cloud Eye says of the alarms, and the evidence for those that matter. Where Cloud Eye does
// not answer, the signals stand for it. A rule of a former instance says nothing about this one.
func (r *round) readAlarms(ctx context.Context, c *autopilot.Case) error {
	if c.Instance == nil {
		return nil
	}
	states, err := r.alarmStates(ctx)
	if err != nil {
		err = fmt.Errorf("read alarm states: %w", err)
	}
	var wanted []EvidenceOf
	for i := range c.Status.Alarms.Rules {
		rule := &c.Status.Alarms.Rules[i]
		if !watches(*rule, *c.Instance) {
			continue
		}
		metric, unknown := autopilot.LookupMetric(rule.Metric)
		if unknown != nil {
			err = errors.Join(err, unknown)
			continue
		}
		a := autopilot.Alarm{Metric: rule.Metric, Signal: autopilot.SignalFor(r.rap.Status.Intake, *rule)}
		if s, ok := states[rule.AlarmID]; ok {
			a.State, a.StateTime = s.State, s.Since
			since := metav1.NewMicroTime(s.Since)
			rule.State, rule.StateTime = s.State, &since
		}
		if metric.HelpedBy == v1alpha1.KindVolume {
			a.GrowthTime = autopilot.RecentGrowth(c.Status.Changes, c.Now)
		}
		c.Alarms = append(c.Alarms, a)
		if a.InForce(c.Now) || !a.GrowthTime.IsZero() {
			wanted = append(wanted, EvidenceOf{rule.Metric, rule.Dimension, metric.PeriodSeconds(r.rap.Spec), a.LastNews()})
		}
	}
	if len(wanted) == 0 {
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
			a.Evidence = a.EvidenceFromSignal(*c)
		}
	}
	return err
}

// watches reports whether a rule watches this instance or a node of it.
func watches(rule v1alpha1.Rule, inst autopilot.Instance) bool {
	_, value, _ := strings.Cut(rule.Dimension, ":")
	return value == inst.ID || slices.Contains(inst.NodeIDs, value)
}

// alarmStates lists the rules anew where a signal that came since says otherwise: a listing of before it may say ok for
// that reason alone. One that agrees will do, so that a storm of alarms costs one listing.
func (r *round) alarmStates(ctx context.Context) (map[string]AlarmState, error) {
	states, err := r.Cloud.AlarmStates(ctx, r.notBefore)
	if err != nil {
		return nil, err
	}
	denied := r.notBefore
	for _, rule := range r.next.Alarms.Rules {
		s := autopilot.SignalFor(r.rap.Status.Intake, rule)
		if s == nil || s.State == states[rule.AlarmID].State {
			continue
		}
		if at := earlier(s.ReceivedTime.Time, r.now); at.After(denied) {
			denied = at
		}
	}
	if !denied.After(r.notBefore) {
		return states, nil
	}
	return r.Cloud.AlarmStates(ctx, denied)
}

// earlier keeps a stamp by the clock of another replica from lying ahead of ours.
func earlier(stamp, now time.Time) time.Time {
	if stamp.After(now) {
		return now
	}
	return stamp
}
