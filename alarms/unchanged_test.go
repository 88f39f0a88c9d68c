// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// The cloud may list names and URLs in another form than it was sent. A second write would change nothing.
func TestEnsureWritesOnceWhenCloudNormalizesFields(t *testing.T) {
	for _, asCode := range []bool{false, true} {
		w := newWorld(t)
		w.sim.Configure(func(s *simcloud.Settings) { s.Normalizes, s.ExistsAsCode = true, asCode })
		w.restartWith("https://Autopilot.example.com/smn/")
		w.ensureWithSnapshot(w.desired())
		w.checkRecord()
		w.checkNothingToDo(w.desired())
		w.sim.Confirm(w.recorded.SubscriptionURN)
		w.checkNothingToDo(w.desired())
		w.alarms = w.process(w.cloud)
		repaired := w.ensureWithSnapshot(w.desired())
		n := w.sim.Count("smn", "Subscribe")
		if len(repaired) > 0 || n != 1 || w.recorded.Subscription != v1alpha1.SubscriptionConfirmed {
			t.Errorf("after a restart: repaired %q, subscribed %d times, %s", repaired, n, w.recorded.Subscription)
		}
		w.checkNothingToDo(w.desired())
		w.checkRecord()
	}
}

// ineffectiveCloud is a cloud that accepts writes and shows other values.
type ineffectiveCloud struct {
	*otc.Cloud
	topic func(*otc.Topic)
	rule  func(*otc.Rule)
}

func (s ineffectiveCloud) Topic(ctx context.Context, urn string) (otc.Topic, error) {
	t, err := s.Cloud.Topic(ctx, urn)
	s.topic(&t)
	return t, err
}

func (s ineffectiveCloud) Topics(ctx context.Context) ([]otc.Topic, error) {
	all, err := s.Cloud.Topics(ctx)
	for i := range all {
		s.topic(&all[i])
	}
	return all, err
}

func (s ineffectiveCloud) Rule(ctx context.Context, id string) (otc.Rule, error) {
	r, err := s.Cloud.Rule(ctx, id)
	s.rule(&r)
	return r, err
}

func (s ineffectiveCloud) Rules(ctx context.Context) ([]otc.Rule, error) {
	all, err := s.Cloud.Rules(ctx)
	for i := range all {
		s.rule(&all[i])
	}
	return all, err
}

func TestEnsureReportsIneffectiveRepairOnce(t *testing.T) {
	ofMetric := func(metric string, change func(*otc.Rule)) func(*otc.Rule) {
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
		err      string // empty if alarms arrive in spite of the difference
	}{
		"display name": {
			topic: func(t *otc.Topic) { t.DisplayName = strings.ToUpper(t.DisplayName) },
			repaired: `the topic's display name was written again, and SMN still shows "RDS-AUTOPILOT SHOP/ORDERS CLUSTER ` +
				strings.ToUpper(clusterID) + `"`,
		},
		"name and description": {
			rule: ofMetric("cpu", func(r *otc.Rule) {
				r.Name, r.Description = strings.ToUpper(r.Name), strings.ToUpper(r.Description)
			}),
			repaired: "the cpu rule was written again, and Cloud Eye still shows different values",
		},
		"enabled, and filter": {
			rule:     ofMetric("cpu", func(r *otc.Rule) { r.Enabled, r.Filter = false, "avg" }),
			repaired: "the cpu rule was written again, and Cloud Eye still shows different values",
			err:      "the cpu rule was written, and Cloud Eye still shows different values",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.desired())
			w.sim.Confirm(w.recorded.SubscriptionURN)
			w.ensureWithSnapshot(w.desired())
			cloud := ineffectiveCloud{w.cloud, func(*otc.Topic) {}, func(*otc.Rule) {}}
			if tt.topic != nil {
				cloud.topic = tt.topic
			}
			if tt.rule != nil {
				cloud.rule = tt.rule
			}
			w.alarms = w.process(cloud)
			check := func(when string, want []string, writes bool) {
				t.Helper()
				listed := snapshotOf(t.Context(), cloud)
				w.sim.ResetRequests()
				_, repaired, err := w.ensureWith(t.Context(), w.alarms, w.desired(), w.recorded, listed, w.record)
				if diff := cmp.Diff(want, repaired); diff != "" {
					t.Errorf("%s: repaired %s", when, diff)
				}
				if err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
					t.Errorf("%s: %v, want %q", when, err, tt.err)
				}
				if len(w.writes()) > 0 != writes || !writes && tt.err == "" && len(w.sim.Requests()) > 0 {
					t.Errorf("%s: wrote %v in %d requests", when, w.writes(), len(w.sim.Requests()))
				}
			}
			check("first run", []string{tt.repaired}, true)
			check("second run", nil, false)
			w.advance(30 * time.Minute)
			check("half an hour later", nil, tt.err != "")
			// Another change by hand is reported and repaired.
			if err := modifyRule(v1alpha1.MetricStorage, setThreshold)(w, t.Context()); err != nil {
				t.Fatal(err)
			}
			check("after another change", []string{"the storage rule was restored"}, true)
			check("in the end", nil, false)
		})
	}
}
