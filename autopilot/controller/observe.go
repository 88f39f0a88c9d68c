// SPDX-License-Identifier: Apache-2.0

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
)

// Observer reads what a decision depends on beside the alarms: for a round of the loop, and for the dry run of plan.
type Observer struct {
	Cloud   Cloud
	Mode    v1alpha1.Mode // the upper bound for every database
	Recheck time.Duration
	Log     *zap.Logger
	Now     func() time.Time
	// Shared reports whether another target has the same instance as this one.
	Shared func(ctx context.Context, t *autopilot.Target) (bool, error)
}

// Observe returns the case of a database whose autopilot is on, as the cloud had it at notBefore or later. Its instance is nil
// where the Rds has no id yet, or the cloud no such instance.
func (o Observer) Observe(ctx context.Context, t *autopilot.Target, a *v1alpha1.RdsAutopilot, notBefore time.Time) (autopilot.Case, error) {
	c := autopilot.Case{
		Mode: autopilot.NarrowerMode(a.Spec.Mode, o.Mode), Enabled: true, Spec: a.Spec, Generation: a.Generation, Recheck: o.Recheck,
		Wanted: t.Wanted, NoRds: t.NoRds, Status: a.Status.Copy(),
	}
	var err error
	if c.Instance, err = o.instance(ctx, t.InstanceID, notBefore); err != nil {
		return c, err
	}
	if c.Instance != nil {
		if t.NoRds {
			c.Wanted = autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
		}
		if c.Shared, err = o.Shared(ctx, t); err != nil {
			return c, err
		}
	}
	c.Now = o.Now() // what is seen now must not be dated to before the listing that shows it
	return c, nil
}

func (o Observer) instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	if id == "" {
		return nil, nil
	}
	inst, err := o.Cloud.Instance(ctx, id, notBefore)
	if err == nil && inst == nil { // it may be newer than that listing
		inst, err = o.Cloud.Instance(ctx, id, o.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", id, err)
	}
	if inst == nil || inst.SizesKnown() {
		return inst, nil
	}
	catalogue, err := o.Cloud.Catalogue(ctx, *inst)
	if err != nil { // storage does not depend on it, and a flavor is not changed without
		o.Log.Warn("read how large the flavor is", zap.String("instance", id), zap.String("flavor", inst.Flavor), zap.Error(err))
		return inst, nil
	}
	sized := inst.WithSizes(catalogue)
	return &sized, nil
}

// observe reads the case of this round.
func (r *round) observe(ctx context.Context) (autopilot.Case, error) {
	o := Observer{Cloud: r.Cloud, Mode: r.Mode, Recheck: r.Recheck, Log: r.log, Now: r.Now, Shared: func(_ context.Context, t *autopilot.Target) (bool, error) {
		return r.Allowed.Shared(r.Cache.TargetsByInstance(t.InstanceID)), nil
	}}
	c, err := o.Observe(ctx, r.target, r.rap, r.notBefore)
	if err != nil {
		return c, err
	}
	c.Status.Switch, r.now = r.lastSwitch, c.Now
	return c, nil
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
	var measured []EvidenceOf
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
		// A sweep does not take Cloud Eye's word for it that all is well.
		if a.InForce(c.Now) || !a.GrowthTime.IsZero() || metric.InGB() && (r.swept || !r.unheardSince().IsZero()) {
			measured = append(measured, EvidenceOf{rule.Metric, rule.Dimension, metric.PeriodSeconds(r.rap.Spec), a.LastNews(), metric.InGB() && r.readsPercent(c.Instance.Engine)})
		}
	}
	if len(measured) == 0 {
		return err
	}
	evidence, readErr := r.Cloud.Evidence(ctx, *c.Instance, measured)
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
		if metric, unknown := autopilot.LookupMetric(a.Metric); unknown == nil && metric.InGB() {
			r.notePercent(c.Instance.Engine, a.Evidence)
			a.UnheardTime = r.noteUnheard(!a.InForce(c.Now) && c.IsFull(a.Evidence))
		}
	}
	return err
}

// readsPercent reports whether this database is the one of its engine whose percentage is compared with the used space. One is
// enough to see in which unit Cloud Eye gives them, and every other costs a reading.
func (r *round) readsPercent(engine string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, chosen := r.percent[engine]; !chosen {
		r.percent[engine] = r.key
	}
	return r.percent[engine] == r.key
}

// notePercent ends that where percent were seen. Else the next sweep may choose another database, this one may be empty.
func (r *round) notePercent(engine string, e autopilot.Evidence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Percent > 1 && r.percent[engine] == r.key {
		r.percent[engine] = Key{}
	}
}

func (r *round) unheardSince() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unheard[r.key]
}

// noteUnheard notes whether the storage is full while no alarm is in force, and returns since when.
func (r *round) noteUnheard(is bool) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !is {
		delete(r.unheard, r.key)
	} else if r.unheard[r.key].IsZero() {
		r.unheard[r.key] = r.now
	}
	return r.unheard[r.key]
}

// readWriters fills in which other writer writes the field that we have written, where that matters.
func (r *round) readWriters(ctx context.Context, c *autopilot.Case) (err error) {
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if !c.NoRds && len(c.Alarms) > 0 && c.Rival == "" && c.Interfered(kind) {
			var readErr error
			c.Rival, readErr = r.Writers.Writer(ctx, r.target, kind)
			err = errors.Join(err, readErr)
		}
	}
	return err
}

// readFlavors fills in what only a change of flavor depends on: the catalogue where one is asked for and, where one would be
// taken, a place among those that change in the cluster, and the instance's own resize list.
func (r *round) readFlavors(ctx context.Context, c *autopilot.Case) (err error) {
	if !c.MayChangeFlavor() {
		return nil
	}
	if c.Catalogue, err = r.Cloud.Catalogue(ctx, *c.Instance); err != nil {
		return fmt.Errorf("read flavors: %w", err)
	}
	for _, f := range c.Catalogue { // until the instance's own list is read
		c.Offered = append(c.Offered, f.Code)
	}
	c.OfferedKnown = true
	if !c.ProposesFlavor() {
		return nil
	}
	if c.FleetBusy = !r.limiter.take(r.key, r.MaxFlavorChanges, r.now); c.FleetBusy {
		return nil
	}
	if c.Offered, c.OfferedKnown, err = r.Cloud.ResizeList(ctx, *c.Instance); err != nil {
		c.Catalogue = nil
		return fmt.Errorf("read the resize list: %w", err)
	}
	return nil
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
	newest := r.notBefore
	for _, rule := range r.rap.Status.Alarms.Rules {
		s := autopilot.SignalFor(r.rap.Status.Intake, rule)
		if s == nil || s.State == states[rule.AlarmID].State {
			continue
		}
		if s.ReceivedTime.After(newest) {
			newest = s.ReceivedTime.Time
		}
	}
	if !newest.After(r.notBefore) {
		return states, nil
	}
	return r.Cloud.AlarmStates(ctx, newest)
}
