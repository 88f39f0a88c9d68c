// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// FactReader reads the facts that guards need. The loop and the dry run of plan use it. It is the only place that reads
// facts.
type FactReader struct {
	Instances InstanceReader
	Evidence  EvidenceReader
	// AlarmStates returns the state of every alarm rule by its id.
	AlarmStates func(ctx context.Context) (map[string]autopilot.AlarmState, error)
	// Writer returns the field manager that wrote the size or the flavor into the Rds.
	Writer func(ctx context.Context, kind v1alpha1.ChangeKind) (string, error)
	// Reserve reserves a place among the flavors that may change at a time, and reports whether there was one.
	Reserve func() bool
}

// Read reads a fact into a case, as autopilot.Reader.
func (f FactReader) Read(ctx context.Context, c *autopilot.Case, fact autopilot.Fact) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the %s: %w", fact, err)
		}
	}()
	defer autopilot.CatchPanic(&err)
	switch fact {
	case autopilot.FactAlarmState:
		states, err := f.AlarmStates(ctx)
		setAlarmStates(c, states)
		return err
	case autopilot.FactUsedSpace:
		return f.measure(ctx, c, v1alpha1.KindVolume)
	case autopilot.FactUsage:
		return f.measure(ctx, c, v1alpha1.KindFlavor)
	case autopilot.FactCatalogue:
		c.Catalogue, err = f.Instances.Catalogue(ctx, *c.Instance)
	case autopilot.FactResizeList:
		c.Offered, err = f.Instances.ResizeList(ctx, *c.Instance)
		refusal, isRefused := errors.AsType[*autopilot.RefusedError](err)
		if c.IsOffered = err == nil; isRefused {
			c.NotOffered, err = refusal.Message, nil
		}
	case autopilot.FactSizeWriter:
		c.SizeWriter, err = f.Writer(ctx, v1alpha1.KindVolume)
	case autopilot.FactFlavorWriter:
		c.FlavorWriter, err = f.Writer(ctx, v1alpha1.KindFlavor)
	case autopilot.FactPlace:
		c.HasPlace = f.Reserve()
	default:
		return errors.New("no reader is known for it")
	}
	return err
}

func setAlarmStates(c *autopilot.Case, states map[string]autopilot.AlarmState) {
	c.Alarms = slices.Clone(c.Alarms)
	for i := range c.Status.Alarms.Rules {
		rule := &c.Status.Alarms.Rules[i]
		s, ok := states[rule.AlarmID]
		if !ok || !watches(*rule, *c.Instance) {
			continue
		}
		since := metav1.NewMicroTime(s.Since)
		rule.State, rule.StateTime = s.State, &since
		for n := range c.Alarms {
			if c.Alarms[n].Metric == rule.Metric {
				c.Alarms[n].State, c.Alarms[n].StateTime = s.State, s.Since
			}
		}
	}
}

// measure measures each alarm that a change of that kind helps, CPU and memory only if their alarm is in force. It
// measures them concurrently, so that they share requests.
func (f FactReader) measure(ctx context.Context, c *autopilot.Case, kind v1alpha1.ChangeKind) error {
	found, failed := slices.Clone(c.Alarms), make([]error, len(c.Alarms))
	var measuring sync.WaitGroup
	for i, a := range c.Alarms {
		metric, unknown := autopilot.LookupMetric(a.Metric)
		if unknown != nil || metric.HelpedBy != kind || !metric.InGB() && !a.InForce(c.Now) {
			continue
		}
		request := autopilot.EvidenceRequest{
			Dimension: ruleDimension(*c, a.Metric), NotBefore: a.LastUpdate(),
			PeriodSeconds: max(1, int(metric.MeasuredOver(c.Spec).Seconds())),
		}
		measuring.Go(func() {
			defer autopilot.CatchPanic(&failed[i])
			found[i].Evidence, failed[i] = c.Measure(a, func(names []string) autopilot.Readings {
				request.Names = names
				return f.Evidence.Points(ctx, *c.Instance, request)
			})
		})
	}
	measuring.Wait()
	for _, a := range found {
		c.SetEvidence(a.Metric, a.Evidence)
	}
	return errors.Join(failed...)
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

func (r *round) facts() FactReader {
	return FactReader{
		Instances: r.cloud, Evidence: r.cloud, AlarmStates: r.alarmStates,
		Writer: func(ctx context.Context, kind v1alpha1.ChangeKind) (string, error) {
			return r.kube.Writer(ctx, r.target, kind)
		},
		Reserve: func() bool { return r.controller.limiter.reserve(r.key, r.options.MaxFlavorChanges, r.options.Now()) },
	}
}

// alarmStates lists the rules again if a newer signal contradicts the list, because the list may be older than the
// alarm. A list that agrees with the signals is used, so a storm of alarms costs one list.
func (r *round) alarmStates(ctx context.Context) (map[string]autopilot.AlarmState, error) {
	states, err := r.cloud.AlarmStates(ctx, r.notBefore)
	if err != nil {
		return nil, err
	}
	newest := r.notBefore
	for _, rule := range r.rap.Status.Alarms.Rules {
		s := autopilot.SignalFor(r.rap.Status.Intake, rule)
		if s != nil && s.State != states[rule.AlarmID].State && s.ReceivedTime.After(newest) {
			newest = s.ReceivedTime.Time
		}
	}
	if !newest.After(r.notBefore) {
		return states, nil
	}
	return r.cloud.AlarmStates(ctx, newest)
}
