package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// arming is the package alarms as the controller wants it.
type arming struct {
	alarms    *alarms.Alarms
	clusterID string
	endpoint  string // the public URL
}

func (a arming) Ensure(ctx context.Context, w controller.Arms, have v1alpha1.Alarms, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, error) {
	dimension, err := alarms.InstanceDimension(w.Instance.Engine)
	if err != nil {
		return have, err
	}
	whose := fmt.Sprintf("%s/%s cluster %s", w.Autopilot.Namespace, w.Autopilot.Name, a.clusterID)
	want := alarms.Want{
		Name:        alarms.Name(w.Autopilot.Namespace, w.Autopilot.Name, string(w.Autopilot.UID)),
		DisplayName: "rds-autopilot " + whose,
		Description: "rds-autopilot " + whose,
		Endpoint:    a.endpoint,
	}
	for _, r := range w.Rules {
		want.Rules = append(want.Rules, alarms.WantRule{
			Metric: string(r.Metric), ThresholdPercent: r.ThresholdPercent, PeriodSeconds: r.PeriodSeconds,
			Count: r.Count, RepeatSeconds: r.RepeatSeconds, Dimension: dimension, DimensionValue: w.Instance.ID,
		})
	}
	got, err := a.alarms.Ensure(ctx, want, toHave(have), func(h alarms.Have) error { return record(fromHave(h)) })
	if errors.Is(err, otc.ErrQuota) {
		err = fmt.Errorf("%w: %w", controller.ErrQuota, err)
	}
	return fromHave(got), err
}

func (a arming) Remove(ctx context.Context, rap *v1alpha1.RdsAutopilot, have v1alpha1.Alarms) error {
	return a.alarms.Remove(ctx, alarms.Name(rap.Namespace, rap.Name, string(rap.UID)), toHave(have))
}

func toHave(a v1alpha1.Alarms) alarms.Have {
	h := alarms.Have{TopicURN: a.TopicURN, SubscriptionURN: a.SubscriptionURN, Subscription: string(a.Subscription)}
	if a.SubscribedTime != nil {
		h.SubscribedTime = a.SubscribedTime.Time
	}
	for _, r := range a.Rules {
		have := alarms.HaveRule{
			Metric: string(r.Metric), ID: r.AlarmID, ThresholdPercent: int(r.ThresholdPercent), Dimension: r.Dimension, State: string(r.State),
		}
		if r.StateTime != nil {
			have.StateTime = r.StateTime.Time
		}
		h.Rules = append(h.Rules, have)
	}
	return h
}

func fromHave(h alarms.Have) v1alpha1.Alarms {
	a := v1alpha1.Alarms{TopicURN: h.TopicURN, SubscriptionURN: h.SubscriptionURN, Subscription: v1alpha1.SubscriptionState(h.Subscription)}
	if !h.SubscribedTime.IsZero() {
		t := metav1.NewTime(h.SubscribedTime.Truncate(time.Second))
		a.SubscribedTime = &t
	}
	for _, r := range h.Rules {
		rule := v1alpha1.Rule{
			Metric: v1alpha1.Metric(r.Metric), AlarmID: r.ID, ThresholdPercent: int32(r.ThresholdPercent), Dimension: r.Dimension, State: v1alpha1.State(r.State),
		}
		if !r.StateTime.IsZero() {
			t := metav1.NewMicroTime(r.StateTime)
			rule.StateTime = &t
		}
		a.Rules = append(a.Rules, rule)
	}
	return a
}
