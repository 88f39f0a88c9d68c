// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The API server goes away for 30 s in the middle of a burst of 100 alarms. What was acknowledged is stored, what was
// not is answered in time and comes again, and every database has grown once in the end.
func TestTheAPIServerGoesAwayInABurstOfAlarms(t *testing.T) {
	const n, outage, before = 100, 30 * time.Second, 10
	// SMN tries for longer than the outage, every 20 s: more often, a slow machine would do nothing but refuse. Without the race
	// detector, for that would slow down so many by far too much.
	// The operator writes five times a second and would have enough to do with looking at them.
	f := newFragile(t, world.Options{Resync: 10 * time.Minute, Cloud: otcsim.Options{Settings: otcsim.Settings{RetryInterval: 20 * time.Minute}}})
	p := f.MustServe(t)
	var dbs []*world.DB
	for i := range n {
		dbs = append(dbs, f.MustAdd(t, world.Database{
			Name: fmt.Sprintf("burst-%d", i), Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: otcsim.Workload{UsedGB: 10}, Autopilot: true,
		}))
	}
	shows(t, p, n, "rds_autopilot_autopilots", "armed=true")

	f.late.Store(int64(4 * time.Minute))
	for _, db := range dbs {
		if err := db.SetWorkload(otcsim.Workload{UsedGB: 93}); err != nil {
			t.Fatal(err)
		}
	}
	err := world.Eventually(world.Within(t), "some alarms are acknowledged", func(context.Context) (bool, error) {
		return len(f.acknowledged()) >= before, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Kube.PauseAPIServer(); err != nil {
		t.Fatal(err)
	}
	away := time.NewTimer(outage)
	<-away.C
	inTime := f.acknowledged()
	if err := f.Kube.ResumeAPIServer(); err != nil {
		t.Fatal(err)
	}
	for _, db := range dbs {
		if at, ok := inTime[topicOf(f, db)]; ok {
			f.stored(t, db, at)
		}
	}
	for _, db := range dbs {
		a, err := db.WaitAutopilot(world.Within(t), "it has grown", func(a *v1alpha1.RdsAutopilot) bool {
			return a.Status.Pending == nil && len(a.Status.Changes) > 0
		})
		if err != nil {
			t.Fatal(err)
		}
		if c := a.Status.Changes; len(c) != 1 || c[0].By != v1alpha1.ByAutopilot || c[0].To != "110" || db.Instance().VolumeGB != 110 {
			t.Errorf("%s has %d GB after %+v, want one change to 110", db.Name, db.Instance().VolumeGB, c)
		}
	}
	inTheEnd := f.acknowledged()
	for _, db := range dbs {
		f.stored(t, db, inTheEnd[topicOf(f, db)])
	}
	f.answers(t)
	t.Logf("%d alarms were acknowledged before and in the outage, %d in the end", len(inTime), len(inTheEnd))
}

// acknowledged is when the newest alarm message was made that was answered 200, by topic.
func (f *fragile) acknowledged() map[string]time.Time {
	newest := map[string]time.Time{}
	for _, d := range f.Cloud.Deliveries() {
		if d.Type == otcsim.TypeNotification && d.State == otcsim.Delivered && d.Created.After(newest[d.TopicURN]) {
			newest[d.TopicURN] = d.Created
		}
	}
	return newest
}

// stored fails unless the object has the alarm that was acknowledged to SMN, or a newer one.
func (f *fragile) stored(t *testing.T, db *world.DB, acknowledged time.Time) {
	t.Helper()
	a, err := db.Autopilot(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(a.Status.Intake.Signals, func(s v1alpha1.Signal) bool { return s.Metric == v1alpha1.MetricStorage })
	if i < 0 || a.Status.Intake.Signals[i].AlarmTime.Time.Before(acknowledged.Truncate(time.Second)) {
		t.Errorf("%s: acknowledged is the alarm of %s, stored is %+v", db.Name, acknowledged, a.Status.Intake.Signals)
	}
}

// answers fails where SMN had another answer than 200 or 503. No answer in its 5 s is what a busy machine gives.
func (f *fragile) answers(t *testing.T) {
	t.Helper()
	refused, late := 0, 0
	for _, d := range f.Cloud.Deliveries() {
		for _, a := range d.Attempts {
			switch a.Status {
			case http.StatusOK:
			case http.StatusServiceUnavailable:
				refused++
			case 0:
				late++
			default:
				t.Errorf("a message of %s is answered %d %s", d.Created, a.Status, a.Err)
			}
		}
	}
	if refused+late == 0 {
		t.Error("nothing was refused: this shows nothing")
	}
	t.Logf("%d refused, %d without an answer", refused, late)
}
