// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// A cloud may list what it was sent in another form. All of it was asked for; none of it is asked for again and again.
func TestEnsureWritesOnceWhenCloudNormalizesFields(t *testing.T) {
	for _, asCode := range []bool{false, true} {
		w := newWorld(t)
		w.sim.Configure(func(s *simcloud.Settings) { s.Normalizes, s.ExistsAsCode = true, asCode })
		want := w.want()
		w.restartWith("https://Autopilot.example.com/smn/")
		w.sweep(want)
		w.checkRecord()
		w.checkQuiet(want)
		w.sim.Confirm(w.recorded.SubscriptionURN)
		w.checkQuiet(want)
		w.alarms = w.process(w.cloud) // another process
		repaired := w.sweep(want)
		if n := w.sim.Count("smn", "Subscribe"); len(repaired) > 0 || n != 1 || w.recorded.Subscription != v1alpha1.SubscriptionConfirmed {
			t.Errorf("after a restart: repaired %q, subscribed %d times, %s", repaired, n, w.recorded.Subscription)
		}
		w.checkQuiet(want)
		w.checkRecord()
	}
}

// stubborn is a cloud that acknowledges what it is told, and shows something else.
type stubborn struct {
	*otc.Cloud
	topic func(*otc.Topic)
	rule  func(*otc.Rule)
}

func (s stubborn) Topic(ctx context.Context, urn string) (otc.Topic, error) {
	t, err := s.Cloud.Topic(ctx, urn)
	s.topic(&t)
	return t, err
}

func (s stubborn) Topics(ctx context.Context) ([]otc.Topic, error) {
	all, err := s.Cloud.Topics(ctx)
	for i := range all {
		s.topic(&all[i])
	}
	return all, err
}

func (s stubborn) Rule(ctx context.Context, id string) (otc.Rule, error) {
	r, err := s.Cloud.Rule(ctx, id)
	s.rule(&r)
	return r, err
}

func (s stubborn) Rules(ctx context.Context) ([]otc.Rule, error) {
	all, err := s.Cloud.Rules(ctx)
	for i := range all {
		s.rule(&all[i])
	}
	return all, err
}

func TestEnsureReportsIneffectiveRepairOnce(t *testing.T) {
	only := func(metric string, change func(*otc.Rule)) func(*otc.Rule) {
		return func(r *otc.Rule) {
			if strings.HasSuffix(strings.ToLower(r.Name), "_"+metric) {
				change(r)
			}
		}
	}
	for name, tt := range map[string]struct {
		topic    func(*otc.Topic)
		rule     func(*otc.Rule)
		repaired string
		err      string // while it lasts; empty if alarms come all the same
	}{
		"display name": {
			topic:    func(t *otc.Topic) { t.DisplayName = strings.ToUpper(t.DisplayName) },
			repaired: `the topic's display name was written again, and SMN still shows "RDS-AUTOPILOT SHOP/ORDERS CLUSTER ` + strings.ToUpper(clusterID) + `"`,
		},
		"description": {
			rule:     only("cpu", func(r *otc.Rule) { r.Description = strings.ToUpper(r.Description) }),
			repaired: "the cpu rule was written again, and Cloud Eye still shows different values: description",
		},
		"name": {
			rule:     only("cpu", func(r *otc.Rule) { r.Name = strings.ToUpper(r.Name) }),
			repaired: "the cpu rule was written again, and Cloud Eye still shows different values: name",
		},
		"filter": {
			rule:     only("memory", func(r *otc.Rule) { r.Filter = "avg" }),
			repaired: "the memory rule was written again, and Cloud Eye still shows different values: filter",
		},
		"threshold": {
			rule:     only("storage", func(r *otc.Rule) { r.Threshold = 99 }),
			repaired: "the storage rule was written again, and Cloud Eye still shows different values: threshold",
			err:      "the storage rule was written, and Cloud Eye still shows different values: threshold",
		},
		"disabled, and something else": {
			rule:     only("cpu", func(r *otc.Rule) { r.Enabled, r.Filter = false, "avg" }),
			repaired: "the cpu rule was written again, and Cloud Eye still shows different values: enabled, filter",
			err:      "the cpu rule was written, and Cloud Eye still shows different values: enabled, filter",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.want())
			w.sim.Confirm(w.recorded.SubscriptionURN)
			w.sweep(w.want())
			cloud := stubborn{w.cloud, func(*otc.Topic) {}, func(*otc.Rule) {}}
			if tt.topic != nil {
				cloud.topic = tt.topic
			}
			if tt.rule != nil {
				cloud.rule = tt.rule
			}
			w.alarms = w.process(cloud)
			sweep := func() (repaired []string, failed string) {
				ctx := t.Context()
				listed := alarms.NewSnapshot(alarms.NewResult(cloud.Topics(ctx)), alarms.NewResult(cloud.Subscriptions(ctx)), alarms.NewResult(cloud.Rules(ctx)))
				w.sim.ResetRequests()
				_, repaired, err := w.ensureWith(ctx, w.alarms, w.want(), w.recorded, listed, w.record)
				if err != nil {
					failed = err.Error()
				}
				return repaired, failed
			}
			repaired, failed := sweep()
			if diff := cmp.Diff([]string{tt.repaired}, repaired); diff != "" || failed != tt.err || len(w.writes()) == 0 {
				t.Errorf("at first: %s, %q, wrote %v", diff, failed, w.writes())
			}
			for range 3 {
				if repaired, failed = sweep(); len(repaired) > 0 || failed != tt.err || len(w.writes()) > 0 {
					t.Errorf("and again: %q, %q, wrote %v", repaired, failed, w.writes())
				}
				if tt.err == "" && len(w.sim.Requests()) > 0 {
					t.Errorf("%d requests for what is in order", len(w.sim.Requests()))
				}
			}
			w.advance(30 * time.Minute)
			if repaired, failed = sweep(); len(repaired) > 0 || failed != tt.err || len(w.writes()) > 0 != (tt.err != "") {
				t.Errorf("half an hour later: %q, %q, wrote %v", repaired, failed, w.writes())
			}
			// Anything else that is changed by hand is reported, and repaired.
			if err := w.cloud.EnableRule(t.Context(), ruleID(w, v1alpha1.MetricMemory), false); err != nil {
				t.Fatal(err)
			}
			if repaired, _ = sweep(); len(repaired) != 1 || !strings.HasPrefix(repaired[0], "the memory rule was ") || len(w.writes()) == 0 {
				t.Errorf("disabled by hand: %q, wrote %v", repaired, w.writes())
			}
			if repaired, failed = sweep(); len(repaired) > 0 || failed != tt.err {
				t.Errorf("in the end: %q, %q", repaired, failed)
			}
		})
	}
}

// What the cloud shows late is no repair in vain: the same damage, done again, is repaired again.
func TestEnsureRepairsAgainAfterRepairTookEffectLate(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.sim.Confirm(w.recorded.SubscriptionURN)
	w.sweep(w.want())
	harm := drifts()["threshold"].do
	if err := harm(w, t.Context()); err != nil {
		t.Fatal(err)
	}
	late, err := w.cloud.Rule(t.Context(), ruleID(w, v1alpha1.MetricCPU))
	if err != nil {
		t.Fatal(err)
	}
	var behind atomic.Bool
	behind.Store(true)
	cloud := stubborn{w.cloud, func(*otc.Topic) {}, func(r *otc.Rule) {
		if behind.Load() && r.ID == late.ID {
			*r = late
		}
	}}
	w.alarms = w.process(cloud)
	if _, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, w.listing(), w.record); err == nil {
		t.Error("armed while the cloud shows another threshold")
	}
	behind.Store(false)
	w.checkQuiet(w.want())
	if err := harm(w, t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"the cpu rule was restored: threshold"}, w.sweep(w.want())); diff != "" {
		t.Error(diff)
	}
	w.checkQuiet(w.want())
}
