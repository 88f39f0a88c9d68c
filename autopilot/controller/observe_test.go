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

// slowInstances returns the same instance for every id, or none. Each read advances the clock by 40 seconds.
type slowInstances struct {
	InstanceReader
	inst      *autopilot.Instance
	now       time.Time
	notBefore []time.Time // the ages that were asked for
}

func (l *slowInstances) Instance(_ context.Context, _ string, notBefore time.Time) (*autopilot.Instance, error) {
	l.now, l.notBefore = l.now.Add(40*time.Second), append(l.notBefore, notBefore)
	return l.inst, nil
}

// listedClaims returns one claim after the other, and records the ages that were asked for.
type listedClaims struct {
	claims    []v1alpha1.Claim
	err       error
	notBefore []time.Time
}

func (l *listedClaims) Claim(_ context.Context, _, _ string, _ []string, notBefore time.Time) (v1alpha1.Claim, error) {
	l.notBefore = append(l.notBefore, notBefore)
	return l.claims[len(l.notBefore)-1], l.err
}

// A list may be older than a rule that the status records, and a claim that cannot be read must not stop a growth.
func TestClaimIsReadAgainIfTheListLacksARecordedRule(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	none, held, others := v1alpha1.Claim{}, v1alpha1.Claim{Holds: true}, v1alpha1.Claim{By: "ns/other"}
	type claims = []v1alpha1.Claim
	for name, tc := range map[string]struct {
		recorded bool
		claims   claims // of the lists
		err      error
		want     v1alpha1.Claim
	}{
		"recorded, the list is old":  {true, claims{none, held}, nil, held},
		"recorded, deleted since":    {true, claims{none, none}, nil, none},
		"recorded, listed of others": {true, claims{others}, nil, others},
		"recorded, unreadable":       {true, claims{none}, errNoAnswer, held},
		"not recorded":               {false, claims{none}, nil, none},
		"not recorded, unreadable":   {false, claims{none}, errNoAnswer, none},
	} {
		lists := &listedClaims{claims: tc.claims, err: tc.err}
		c := autopilot.Case{Mode: v1alpha1.ModeAuto, Instance: &autopilot.Instance{ID: "in01"}}
		if tc.recorded {
			c.Status.Alarms.Rules = []v1alpha1.Rule{{AlarmID: "al1", Dimension: "rds_cluster_id:in01"}}
		}
		o := Observer{Claims: lists, Now: func() time.Time { return now }}
		o.claim(t.Context(), &c, &autopilot.Target{}, now.Add(-time.Minute))
		n := len(lists.notBefore)
		if c.Claim != tc.want || n != len(tc.claims) || n > 1 && !lists.notBefore[1].Equal(now) {
			t.Errorf("%s: %+v by lists of %v, want %+v", name, c.Claim, lists.notBefore, tc.want)
		}
	}
}

// A change must not be completed before the list that shows it, or in the future. Anyone can write invented ids, so a
// list of the last 30 seconds is proof enough that there is no such instance.
func TestObserveReadsNodeIDsAndUnknownIDs(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for nodeOf, inst := range map[string]*autopilot.Instance{"in02": {ID: "in02"}, "": nil} {
		lists := &slowInstances{inst: inst, now: begin}
		o := Observer{Instances: lists, Now: func() time.Time { return lists.now }}
		target := &autopilot.Target{InstanceID: "in01"}
		c, err := o.Observe(t.Context(), target, &v1alpha1.RdsAutopilot{}, begin.Add(-time.Hour))
		if err != nil || c.Instance != nil || c.NodeOf != nodeOf || !c.Now.Equal(lists.now) {
			t.Errorf("instance %+v, node of %q, at %s, %v; want at %s", c.Instance, c.NodeOf, c.Now, err, lists.now)
		}
		if at := lists.notBefore; inst == nil && (len(at) != 2 || !at[1].Equal(begin.Add((40-30)*time.Second))) {
			t.Errorf("no instance by lists of %v", at)
		}
	}
}

func TestRulesOfAFormerInstanceAreIgnored(t *testing.T) {
	const storage = v1alpha1.MetricStorage
	c := autopilot.Case{Instance: &autopilot.Instance{ID: "in02"}, Status: v1alpha1.Status{
		Alarms: v1alpha1.Alarms{Rules: []v1alpha1.Rule{{Metric: storage, AlarmID: "al1", Dimension: "rds_cluster_id:in01"}}},
		Intake: v1alpha1.Intake{Signals: []v1alpha1.Signal{{Metric: storage, AlarmID: "al1", State: v1alpha1.StateAlarm}}},
	}}
	err := addAlarms(&c)
	setAlarmStates(&c, map[string]autopilot.AlarmState{"al1": {State: v1alpha1.StateAlarm, Since: time.Unix(100, 0)}})
	if err != nil || len(c.Alarms) != 1 || c.Alarms[0].Signal != nil || c.Alarms[0].State != "" {
		t.Errorf("alarms %+v, %v; want the used space alone", c.Alarms, err)
	}
}

// recordedLists records the time of each list of alarm states.
type recordedLists struct {
	Cloud
	state     v1alpha1.State
	notBefore []time.Time
}

func (s *recordedLists) AlarmStates(_ context.Context, notBefore time.Time) (map[string]autopilot.AlarmState, error) {
	s.notBefore = append(s.notBefore, notBefore)
	return map[string]autopilot.AlarmState{"al1": {State: s.state}}, nil
}

// A list may be older than the alarm. In a storm of alarms, a list for each signal would cost too many requests.
func TestRulesAreListedAgainOnlyIfASignalContradictsTheList(t *testing.T) {
	begin := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		listed   v1alpha1.State
		received time.Time
		lists    int
	}{
		"signal agrees":                  {v1alpha1.StateAlarm, begin.Add(time.Second), 1},
		"newer signal contradicts":       {v1alpha1.StateOK, begin.Add(time.Second), 2},
		"signal before the list differs": {v1alpha1.StateOK, begin.Add(-time.Second), 1},
	} {
		lists := &recordedLists{state: tc.listed}
		r := &round{cloud: lists, notBefore: begin, rap: &v1alpha1.RdsAutopilot{Status: v1alpha1.Status{
			Alarms: v1alpha1.Alarms{Rules: []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: "al1"}}},
			Intake: v1alpha1.Intake{Signals: []v1alpha1.Signal{{
				Metric: v1alpha1.MetricStorage, AlarmID: "al1", State: v1alpha1.StateAlarm,
				ReceivedTime: metav1.NewMicroTime(tc.received),
			}}},
		}}}
		_, err := r.alarmStates(t.Context())
		if err != nil || len(lists.notBefore) != tc.lists || tc.lists == 2 && !lists.notBefore[1].Equal(tc.received) {
			t.Errorf("%s: lists of %v, %v; want %d", name, lists.notBefore, err, tc.lists)
		}
	}
}

// A value from before a growth belongs to the former size only if a check saw that size after it. Else the growth may be
// older than the value.
func TestFormerSizeCountsUntilTheLastCheckThatSawIt(t *testing.T) {
	for name, isChecked := range map[string]bool{"a check saw the former size after it": true, "no check was made for ten minutes": false} {
		t.Run(name, func(t *testing.T) {
			withAlarm(t, func(t *testing.T, w *world, c *Controller) {
				w.mustDecide(c)
				w.now = w.now.Add(10 * time.Minute)
				if isChecked {
					w.mustDecide(c)
				}
				w.now = w.now.Add(time.Minute)
				w.apply()
				w.usedGB, w.delay = 96, 4*time.Minute // read-only with 100 GB, and not with 110
				w.mustDecide(c)
				if got := w.rap().Status.ReadOnly; (got != nil) != isChecked {
					t.Errorf("read-only: %+v", got)
				}
			})
		})
	}
}

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
