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
	const minute, hour = time.Minute, time.Hour
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	rules := func(dimension string) []v1alpha1.Rule { return []v1alpha1.Rule{{AlarmID: "al1", Dimension: dimension}} }
	atInstance, atFormer := rules(own), rules(former)
	tests := map[string]struct {
		active   time.Duration // since when; 0 means never
		status   string
		rules    []v1alpha1.Rule
		was      string // instance id
		err      error
		want     string
		requests int
	}{
		"ok for 30 minutes":           {active: 30 * minute, rules: atInstance, want: node, requests: 1},
		"ok for less than 30 minutes": {active: 30*minute - time.Second, rules: atInstance},
		"never ACTIVE":                {rules: atInstance},
		"full from the beginning":     {status: autopilot.StatusStorageFull, rules: atInstance, want: node, requests: 1},
		"rules watch the node":        {active: hour, rules: rules(node), want: node, requests: 1},
		"failover":                    {active: time.Second, rules: atFormer, want: node, requests: 1},
		"no answer":                   {active: hour, rules: atInstance, err: errNoAnswer, requests: 1},
		"no answer after a failover":  {active: hour, rules: atFormer, err: errNoAnswer, want: former, requests: 1},
		"rules of another instance":   {active: hour, rules: rules("rds_instance_id:node-9"), was: "in00"},
	}
	for name, tt := range tests {
		c := &nodeData{err: tt.err}
		s := v1alpha1.Status{Instance: &v1alpha1.Instance{ID: cmp.Or(tt.was, "in01")}}
		s.Alarms.Rules = tt.rules
		if tt.active > 0 {
			since := metav1.NewTime(now.Add(-tt.active))
			s.Instance.ActiveSince = &since
		}
		r := &round{cloud: c, now: now, log: zap.NewNop(), rap: &v1alpha1.RdsAutopilot{Status: s}}
		got := r.dimension(t.Context(), autopilot.Instance{ID: "in01", Primary: "node-1", Status: tt.status})
		if got != tt.want || c.requests != tt.requests {
			t.Errorf("%s: %q, %d requests; want %q, %d", name, got, c.requests, tt.want, tt.requests)
		}
	}
}
