// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// nodesOnly is a Cloud Eye that has data of nodes alone, or does not answer.
type nodesOnly struct {
	Cloud
	asked int
	err   error
}

func (n *nodesOnly) Dimension(_ context.Context, inst autopilot.Instance) (string, error) {
	n.asked++
	return "rds_instance_id:" + inst.Primary, n.err
}

func TestWhenTheDimensionIsLookedFor(t *testing.T) {
	const own, node = "rds_cluster_id:in01", "rds_instance_id:node-1"
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { t := metav1.NewTime(now.Add(-d)); return &t }
	rules := func(dimension string, state v1alpha1.State, since time.Duration) []v1alpha1.Rule {
		at := metav1.NewMicroTime(now.Add(-since))
		return []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: "al1", Dimension: dimension, State: state, StateTime: &at}}
	}
	signal := func(id string) v1alpha1.Intake { return v1alpha1.Intake{Signals: []v1alpha1.Signal{{AlarmID: id}}} }
	tests := map[string]struct {
		active *metav1.Time
		status string
		rules  []v1alpha1.Rule
		intake v1alpha1.Intake
		was    string // instance id
		err    error
		want   string
		asked  int
	}{
		"30 minutes after ACTIVE, in ok":          {active: ago(30 * time.Minute), rules: rules(own, v1alpha1.StateOK, 30*time.Minute), want: node, asked: 1},
		"before that":                             {active: ago(30*time.Minute - time.Second), rules: rules(own, v1alpha1.StateOK, time.Hour)},
		"never ACTIVE":                            {rules: rules(own, v1alpha1.StateOK, time.Hour)},
		"full from the beginning":                 {status: autopilot.StatusStorageFull, rules: rules(own, v1alpha1.StateOK, time.Hour), want: node, asked: 1},
		"in alarm":                                {active: ago(time.Hour), rules: rules(own, v1alpha1.StateAlarm, time.Minute)},
		"an alarm came":                           {active: ago(time.Hour), rules: rules(own, v1alpha1.StateOK, time.Minute), intake: signal("al1")},
		"an alarm of another rule came":           {active: ago(time.Hour), rules: rules(own, v1alpha1.StateOK, time.Minute), intake: signal("al2"), want: node, asked: 1},
		"an alarm came, then no data for long":    {active: ago(time.Hour), rules: rules(own, v1alpha1.StateInsufficientData, 30*time.Minute), intake: signal("al1"), want: node, asked: 1},
		"an alarm came, no data for a short time": {active: ago(time.Hour), rules: rules(own, v1alpha1.StateInsufficientData, time.Minute), intake: signal("al1")},
		"on the node":                             {active: ago(time.Hour), rules: rules(node, v1alpha1.StateOK, time.Hour), want: node},
		"on another node: a failover":             {active: ago(time.Second), rules: rules("rds_instance_id:node-2", v1alpha1.StateOK, time.Hour), want: node, asked: 1},
		"Cloud Eye does not say":                  {active: ago(time.Hour), rules: rules(own, v1alpha1.StateOK, time.Hour), err: errors.New("no answer"), asked: 1},
		"a failover, and it does not say":         {active: ago(time.Hour), rules: rules("rds_instance_id:node-2", v1alpha1.StateOK, time.Hour), err: errors.New("no answer"), want: "rds_instance_id:node-2", asked: 1},
		"rules of another instance":               {active: ago(time.Hour), rules: rules("rds_instance_id:node-9", v1alpha1.StateOK, time.Hour), was: "in00"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			arming := &nodesOnly{err: tt.err}
			r := &round{
				cloud: arming, now: now, log: zap.NewNop(),
				rap: &v1alpha1.RdsAutopilot{Status: v1alpha1.Status{
					Instance: &v1alpha1.Instance{ID: cmp.Or(tt.was, "in01"), ActiveSince: tt.active},
					Alarms:   v1alpha1.Alarms{Rules: tt.rules}, Intake: tt.intake,
				}},
			}
			got, err := r.dimension(t.Context(), autopilot.Instance{ID: "in01", Primary: "node-1", Status: tt.status})
			if got != tt.want || err != nil || arming.asked != tt.asked {
				t.Errorf("%q, %v, asked %d times; want %q, %d", got, err, arming.asked, tt.want, tt.asked)
			}
		})
	}
}
