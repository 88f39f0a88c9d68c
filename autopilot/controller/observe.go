// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// unknownFor is how long a list is proof that the cloud has no instance with an id. Anyone can write invented ids, and
// a list for each check of each of them would leave no requests for others.
const unknownFor = 30 * time.Second

// Observer reads what a decision needs except the alarms. The loop and the dry run of plan use it.
type Observer struct {
	Instances InstanceReader
	Mode      v1alpha1.Mode // upper bound for every database
	Recheck   time.Duration
	Log       *zap.Logger
	Now       func() time.Time
	Allowed   autopilot.Allowed
	// Claims returns every target that names the instance.
	Claims func(ctx context.Context, instanceID string) ([]*autopilot.Target, error)
}

// Observe returns the case of a database whose autopilot is on, as the cloud had it at notBefore or later. Its
// instance is nil if the Rds has no id yet or the cloud has no such instance.
func (o Observer) Observe(ctx context.Context, t *autopilot.Target, a *v1alpha1.RdsAutopilot,
	notBefore time.Time) (autopilot.Case, error) {
	c := autopilot.Case{
		Mode: autopilot.NarrowerMode(a.Spec.Mode, o.Mode), Enabled: true, Spec: a.Spec, Generation: a.Generation,
		Recheck: o.Recheck,
		Wanted:  t.Wanted, NoRds: t.NoRds, Status: a.Status.Copy(),
	}
	var err error
	if c.Instance, err = o.instance(ctx, t.InstanceID, notBefore); err != nil {
		return c, err
	}
	if c.Instance != nil {
		if t.NoRds {
			c.Wanted = autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
		}
		claims, err := o.Claims(ctx, t.InstanceID)
		if err != nil {
			return c, err
		}
		if first := o.Allowed.FirstClaim(claims); first != nil && (first.Namespace != t.Namespace || first.Name != t.Name) {
			c.ClaimedBy = first.Namespace + "/" + first.Name
		}
	}
	c.Now = o.Now() // after the reads, because nothing may be dated before the list that shows it
	autopilot.ClampTimes(&c.Status, c.Now)
	return c, nil
}

func (o Observer) instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	if id == "" {
		return nil, nil
	}
	inst, err := o.Instances.Instance(ctx, id, notBefore)
	if err == nil && inst == nil { // it may be newer than the list
		inst, err = o.Instances.Instance(ctx, id, o.Now().Add(-unknownFor))
	}
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", id, err)
	}
	if inst == nil || inst.SizesKnown() {
		return inst, nil
	}
	catalogue, err := o.Instances.Catalogue(ctx, *inst)
	if err != nil { // storage decisions do not need the sizes, and flavor decisions report NoData
		o.Log.Warn("read the flavor's size", zap.String("instance", id), zap.String("flavor", inst.Flavor), zap.Error(err))
		return inst, nil
	}
	sized := inst.WithSizes(catalogue)
	return &sized, nil
}

// observe reads the case of this round.
func (r *round) observe(ctx context.Context) (autopilot.Case, error) {
	o := Observer{
		Instances: r.cloud, Mode: r.options.Mode, Recheck: r.options.Recheck, Log: r.log, Now: r.options.Now,
		Allowed: r.options.Allowed,
		Claims: func(_ context.Context, id string) ([]*autopilot.Target, error) {
			return r.kube.TargetsByInstance(id), nil
		},
	}
	c, err := o.Observe(ctx, r.target, r.rap, r.notBefore)
	if err != nil {
		return c, err
	}
	c.Status.Switch, r.now = r.lastSwitch, c.Now
	return c, nil
}

// readAlarms adds the alarm states from Cloud Eye to the case, and evidence for the alarms that need it. Rules of an
// earlier instance are ignored. Storage has an alarm without a rule as well, because its used space counts by itself.
// If storage has to grow, readAlarms leaves the other alarms to the next round, so that no other read delays the
// growth.
func (r *round) readAlarms(ctx context.Context, c *autopilot.Case) error {
	if c.Instance == nil {
		return nil
	}
	states, err := r.alarmStates(ctx)
	if err != nil {
		err = fmt.Errorf("read alarm states: %w", err)
	}
	for i := range c.Status.Alarms.Rules {
		rule := &c.Status.Alarms.Rules[i]
		if !watches(*rule, *c.Instance) {
			continue
		}
		if _, unknown := autopilot.LookupMetric(rule.Metric); unknown != nil {
			err = errors.Join(err, unknown)
			continue
		}
		a := autopilot.Alarm{Metric: rule.Metric, Signal: autopilot.SignalFor(r.rap.Status.Intake, *rule)}
		if s, ok := states[rule.AlarmID]; ok {
			a.State, a.StateTime = s.State, s.Since
			since := metav1.NewMicroTime(s.Since)
			rule.State, rule.StateTime = s.State, &since
		}
		c.Alarms = append(c.Alarms, a)
	}
	isStorage := func(a autopilot.Alarm) bool { return a.Metric == v1alpha1.MetricStorage }
	if !slices.ContainsFunc(c.Alarms, isStorage) {
		c.Alarms = append(c.Alarms, autopilot.Alarm{Metric: v1alpha1.MetricStorage})
	}
	err = errors.Join(err, r.readEvidence(ctx, c, v1alpha1.KindVolume))
	if v := autopilot.Decide(*c); v.Intent != nil && v.Intent.Kind == v1alpha1.KindVolume {
		c.Alarms = slices.DeleteFunc(c.Alarms, func(a autopilot.Alarm) bool { return !isStorage(a) })
		return err
	}
	return errors.Join(err, r.readEvidence(ctx, c, v1alpha1.KindFlavor))
}

// readEvidence adds evidence for the alarms that a change of that kind helps. If Cloud Eye does not answer for a
// metric, its stored signal is the evidence. A value of the used space that was read updates status.overThresholdSince.
func (r *round) readEvidence(ctx context.Context, c *autopilot.Case, kind v1alpha1.ChangeKind) error {
	var requests []EvidenceRequest
	for i := range c.Alarms {
		a := &c.Alarms[i]
		metric, unknown := autopilot.LookupMetric(a.Metric)
		if unknown != nil || metric.HelpedBy != kind {
			continue
		}
		needed := a.InForce(c.Now)
		if metric.InGB() {
			a.GrowthTime = autopilot.RecentGrowth(c.Status.Changes, c.Now)
			needed = needed || r.isSweep || !a.GrowthTime.IsZero() || c.Status.OverThresholdSince != nil
		}
		if needed {
			requests = append(requests, EvidenceRequest{a.Metric, ruleDimension(*c, a.Metric), metric.PeriodSeconds(c.Spec),
				a.LastUpdate()})
		}
	}
	found, failed := ReadEvidence(ctx, r.cloud, *c.Instance, requests)
	for i := range c.Alarms {
		a := &c.Alarms[i]
		a.Evidence = cmp.Or(found[a.Metric], a.Evidence)
		if failed[a.Metric] != nil {
			a.Evidence = a.EvidenceFromSignal(*c)
		}
		if a.Metric != v1alpha1.MetricStorage || kind != v1alpha1.KindVolume {
			continue
		}
		if c.MayGrowEarly(a.Evidence) {
			a.Evidence.Steady = r.readSteady(ctx, *c, a.Evidence.Time)
		}
		c.Status.Used = c.UsedSpace(found[a.Metric])
		if c.Status.OverThresholdSince = c.OverThresholdSince(found[a.Metric]); c.Status.OverThresholdSince != nil {
			a.AlarmOverdueSince = c.Status.OverThresholdSince.Time
		}
	}
	return errors.Join(slices.Collect(maps.Values(failed))...)
}

// ReadEvidence reads several measurements concurrently, so that they share requests. A metric is in neither result if
// Cloud Eye has no data of it. failed has the error of each metric that could not be read.
func ReadEvidence(ctx context.Context, reader EvidenceReader, inst autopilot.Instance, requests []EvidenceRequest,
) (found map[v1alpha1.Metric]autopilot.Evidence, failed map[v1alpha1.Metric]error) {
	found, failed = make(map[v1alpha1.Metric]autopilot.Evidence), make(map[v1alpha1.Metric]error)
	var mu sync.Mutex
	var reading sync.WaitGroup
	for _, w := range requests {
		reading.Go(func() {
			e, err := readOne(ctx, reader, inst, w)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed[w.Metric] = fmt.Errorf("read evidence for %s: %w", w.Metric, err)
			case e.Present():
				found[w.Metric] = e
			}
		})
	}
	reading.Wait()
	return found, failed
}

// readOne turns a panic into the error of that measurement, because the goroutine is not the round's.
func readOne(ctx context.Context, reader EvidenceReader, inst autopilot.Instance,
	w EvidenceRequest) (e autopilot.Evidence, err error) {
	defer autopilot.CatchPanic(&err)
	return reader.Evidence(ctx, inst, w)
}

// ruleDimension returns the dimension of the instance's rule of that metric; empty if there is none.
func ruleDimension(c autopilot.Case, m v1alpha1.Metric) string {
	for _, rule := range c.Status.Alarms.Rules {
		if rule.Metric == m && watches(rule, *c.Instance) {
			return rule.Dimension
		}
	}
	return ""
}

// readWriters adds the field manager that has changed our size or flavor, if someone has.
func (r *round) readWriters(ctx context.Context, c *autopilot.Case) (err error) {
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if c.NeedsWriter(kind) {
			var readErr error
			c.OtherWriter, readErr = r.kube.Writer(ctx, r.target, kind)
			err = errors.Join(err, readErr)
		}
	}
	return err
}

// readFlavors adds what only a flavor decision needs. It reads the catalogue if a metric asks for a larger flavor. If
// one would be chosen, it also reserves a place among the flavor changes of the cluster and reads the instance's
// resize list.
func (r *round) readFlavors(ctx context.Context, c *autopilot.Case) (err error) {
	if !c.MayChangeFlavor() {
		return nil
	}
	if c.Catalogue, err = r.cloud.Catalogue(ctx, *c.Instance); err != nil {
		return fmt.Errorf("read flavors: %w", err)
	}
	for _, f := range c.Catalogue { // a first proposal, before the instance's own list is read
		c.Offered = append(c.Offered, f.Code)
	}
	c.OfferedKnown = true
	if !c.ProposesFlavor() {
		return nil
	}
	if c.FleetBusy = !r.controller.limiter.reserve(r.key, r.options.MaxFlavorChanges, r.now); c.FleetBusy {
		return nil
	}
	r.readLoad(ctx, c)
	if c.Offered, c.OfferedKnown, err = r.cloud.ResizeList(ctx, *c.Instance); err != nil {
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

// alarmStates lists the rules again if a newer signal contradicts the list, because the list may be older than the
// alarm. A list that agrees with the signals is used, so a storm of alarms costs one list.
func (r *round) alarmStates(ctx context.Context) (map[string]AlarmState, error) {
	states, err := r.cloud.AlarmStates(ctx, r.notBefore)
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
	return r.cloud.AlarmStates(ctx, newest)
}
