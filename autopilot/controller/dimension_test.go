// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// nodeData is a cloud that has data of the primary node alone, or does not answer.
type nodeData struct {
	Cloud
	requests int
	err      error
}

func (n *nodeData) Dimension(_ context.Context, inst autopilot.Instance) (string, error) {
	n.requests++
	return "rds_instance_id:" + inst.Primary, n.err
}

func TestRulesWatchThePrimaryNodeOnceTheInstanceHasNoData(t *testing.T) {
	const own, node, former = "rds_cluster_id:in01", "rds_instance_id:node-1", "rds_instance_id:node-2"
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	rules := func(dimension string, state v1alpha1.State, age time.Duration) []v1alpha1.Rule {
		since := metav1.NewMicroTime(now.Add(-age))
		return []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: "al1", Dimension: dimension, State: state, StateTime: &since}}
	}
	silent := rules(own, v1alpha1.StateOK, time.Hour)
	tests := map[string]struct {
		active   time.Duration // since when; 0 means never
		status   string
		rules    []v1alpha1.Rule
		signalOf string // id of a rule
		was      string // instance id
		err      error
		want     string
		requests int
	}{
		"ok for 30 minutes":              {active: 30 * time.Minute, rules: silent, want: node, requests: 1},
		"ok for less than 30 minutes":    {active: 30*time.Minute - time.Second, rules: silent},
		"never ACTIVE":                   {rules: silent},
		"full from the beginning":        {status: autopilot.StatusStorageFull, rules: silent, want: node, requests: 1},
		"alarm in force":                 {active: time.Hour, rules: rules(own, v1alpha1.StateAlarm, time.Minute)},
		"alarm has come":                 {active: time.Hour, rules: silent, signalOf: "al1"},
		"alarm of another rule has come": {active: time.Hour, rules: silent, signalOf: "al2", want: node, requests: 1},
		"alarm, then no data":            {active: time.Hour, rules: rules(own, v1alpha1.StateInsufficientData, time.Minute), signalOf: "al1"},
		"alarm, then no data for long":   {active: time.Hour, rules: rules(own, v1alpha1.StateInsufficientData, 30*time.Minute), signalOf: "al1", want: node, requests: 1},
		"rules watch the node":           {active: time.Hour, rules: rules(node, v1alpha1.StateOK, time.Hour), want: node},
		"failover":                       {active: time.Second, rules: rules(former, v1alpha1.StateOK, time.Hour), want: node, requests: 1},
		"no answer":                      {active: time.Hour, rules: silent, err: errNoAnswer, requests: 1},
		"no answer after a failover":     {active: time.Hour, rules: rules(former, v1alpha1.StateOK, time.Hour), err: errNoAnswer, want: former, requests: 1},
		"rules of another instance":      {active: time.Hour, rules: rules("rds_instance_id:node-9", v1alpha1.StateOK, time.Hour), was: "in00"},
	}
	for name, tt := range tests {
		c := &nodeData{err: tt.err}
		s := v1alpha1.Status{Instance: &v1alpha1.Instance{ID: cmp.Or(tt.was, "in01")}, Alarms: v1alpha1.Alarms{Rules: tt.rules}}
		if tt.active > 0 {
			since := metav1.NewTime(now.Add(-tt.active))
			s.Instance.ActiveSince = &since
		}
		if tt.signalOf != "" {
			s.Intake.Signals = []v1alpha1.Signal{{AlarmID: tt.signalOf}}
		}
		r := &round{cloud: c, now: now, log: zap.NewNop(), rap: &v1alpha1.RdsAutopilot{Status: s}}
		got, err := r.dimension(t.Context(), autopilot.Instance{ID: "in01", Primary: "node-1", Status: tt.status})
		if got != tt.want || err != nil || c.requests != tt.requests {
			t.Errorf("%s: %q, %v, %d requests; want %q, %d", name, got, err, c.requests, tt.want, tt.requests)
		}
	}
}
