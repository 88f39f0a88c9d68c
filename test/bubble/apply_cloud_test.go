// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// applyCloud returns the flags of an administrator who allows apply: Cloud for every instance.
func applyCloud() flags {
	return flags{
		sweep: 5 * time.Minute, recheck: 30 * time.Second,
		allowed: autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}},
	}
}

// databaseWithoutRds adds an instance and an RdsAutopilot that names it, and returns the ID.
func (f *fleet) databaseWithoutRds(namespace, name string, in simcloud.Instance) string {
	f.t.Helper()
	in.Name = name
	id := f.addInstance(in).ID
	f.createAutopilot(namespace, name, `{"apply":"Cloud","instanceID":"`+id+`"}`)
	return id
}

// checkChanges fails unless status.changes has exactly these, newest first, and nothing is pending.
func (f *fleet) checkChanges(name string, want ...string) {
	f.t.Helper()
	var got []string
	s := f.autopilot("default", name).Status
	for _, ch := range s.Changes {
		got = append(got, fmt.Sprintf("%s %s→%s %s", ch.By, ch.From, ch.To, ch.Outcome))
	}
	if !slices.Equal(got, want) || s.Pending != nil {
		f.t.Errorf("%s: status.changes is %v, pending %+v; want %v", name, got, s.Pending, want)
	}
}

// In the swarm, requests are refused and jobs fail, but the oracle does not judge how that is reported.
func TestRefusalsAndFailedJobsOfTheCloudAreReportedAndRetried(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		refusal := simcloud.Refusals()["quota"]
		f := newFleet(t, simcloud.Settings{Refuse: map[string]simcloud.Refusal{"EnlargeVolume": refusal}})
		id := f.databaseWithoutRds("default", "db", smallInstance())
		f.start(applyCloud())
		f.waitArmed("default", "db")
		f.must(f.sim.SetWorkload(id, simcloud.Workload{UsedGB: 93}))
		hasReason := func(reason string) func() bool { return func() bool { return f.hasDecision("db", reason) } }
		pending := func() v1alpha1.Intent {
			t.Helper()
			p := f.autopilot("default", "db").Status.Pending
			if p == nil {
				t.Fatal("nothing is pending")
			}
			return *p
		}

		f.waitUntil("the refusal is reported", hasReason("QuotaExceeded"))
		time.Sleep(2 * time.Minute)
		d, p := f.autopilot("default", "db").Status.Decisions[0], pending()
		cause := strings.TrimSuffix(refusal.Message, ".")
		if !strings.Contains(d.Message, cause) || !strings.Contains(d.Message, ". Next check at 20") {
			t.Errorf("the decision is %+v", d)
		}
		r := p.Refusal
		if r == nil || r.Reason != "QuotaExceeded" || r.NextTime == nil || r.NextTime.Before(&r.Time) || p.JobID != "" {
			t.Fatalf("pending is %+v, %+v", p, p.Refusal)
		}
		requests := f.sim.Count("rds", "EnlargeVolume")
		time.Sleep(time.Hour)
		if n := f.sim.Count("rds", "EnlargeVolume") - requests; n < 3 || n > 8 { // after 1, 2, 4, 8 and then every 15 minutes
			t.Errorf("requested again %d times in an hour", n)
		}

		f.sim.Configure(func(s *simcloud.Settings) { s.Refuse, s.JobsFail = nil, true })
		f.waitUntil("the failed job is reported", hasReason("JobFailed"))
		if r := pending().Refusal; r == nil || r.Message != "simulated failure" {
			t.Errorf("the refusal is %+v", r)
		}
		requests = f.sim.Count("rds", "EnlargeVolume")
		time.Sleep(3 * time.Hour)
		if n := f.sim.Count("rds", "EnlargeVolume") - requests; n < 5 || n > 15 {
			t.Errorf("requested again %d times in three hours", n)
		}
		f.waitUntil("no job is running", func() bool { return pending().JobID == "" })
		f.sim.Configure(func(s *simcloud.Settings) { s.JobsFail, s.EnlargeDuration = false, 5*time.Hour })
		f.waitUntil("a job that does not end is reported", hasReason("Stalled"))
		if pending().JobID == "" {
			t.Error("the stalled job is forgotten")
		}
		time.Sleep(5 * time.Hour)
		f.checkChanges("db", "Autopilot 100→110 Completed")
	})
}

// A team cannot stop another team's autopilot by naming its instance: neither with an RdsAutopilot, nor with an older
// Rds that was armed for another instance. An Rds whose autopilot is not on claims nothing.
func TestInstanceStaysWithObjectThatWasArmedFirst(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		other := f.namespace("other")
		f.createRds(other, "dormant", rdsSpec(smallInstance(), nil), "in-later")
		f.database(other, "older", smallInstance())
		f.start(applyCloud())
		f.waitArmed(other, "older")
		time.Sleep(time.Hour)
		in := f.database("default", "db", smallInstance())
		f.patch(f.rdss(other), "dormant", `{"status":{"id":"`+in.ID+`"}}`)
		f.waitArmed("default", "db")
		f.createAutopilot(other, "younger", `{"apply":"Cloud","instanceID":"`+in.ID+`"}`)
		f.patch(f.rdss(other), "older", `{"status":{"id":"`+in.ID+`"}}`)
		changed := metav1.Now()
		for _, held := range []string{"younger", "older"} {
			a := f.waitNotArmed(other, held, "InstanceUnknown")
			if text := armedCondition(a).Message; !strings.HasPrefix(text, "default/db names the same instance and was first") {
				t.Errorf("%s: %q", held, text)
			}
			f.waitUntil("an event reports "+held, func() bool { return len(f.events(other, held, "InstanceUnknown")) > 0 })
		}
		if took := time.Since(changed.Time); took > 2*time.Minute {
			t.Errorf("it is reported after %s", took)
		}
		time.Sleep(time.Hour)
		f.waitArmed("default", "db")
		f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 93}))
		f.waitUntil("the first object grows the volume", func() bool { return f.requested("db").volumeGB == 110 })
		for _, held := range []string{"younger", "older"} {
			f.waitNotArmed(other, held, "InstanceUnknown")
			if n := len(f.events(other, held, "InstanceUnknown")); n > 2 { // one on the Rds, one on the RdsAutopilot
				t.Errorf("%d events about %s", n, held)
			}
		}
		f.delete(f.rdss("default"), "db")
		f.delete(f.raps(other), "younger")
		f.waitArmed(other, "older")
	})
}

// --allowed-instances holds for an Rds as well, and with apply: Operator.
func TestInstanceThatIsNotListedIsNotArmed(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		other := f.namespace("other")
		in := f.database("default", "db", smallInstance())
		f.createRds(other, "rds", rdsSpec(in, true), in.ID)
		f.createAutopilot(other, "alone", `{"apply":"Cloud","instanceID":"`+in.ID+`"}`)
		allowed := autopilot.Allowed{Apply: v1alpha1.ApplyOperator, Instances: []string{"default/*"}}
		f.start(flags{sweep: 5 * time.Minute, allowed: allowed})
		f.waitArmed("default", "db")
		time.Sleep(10 * time.Minute)
		f.waitArmed("default", "db")
		for db, reason := range map[string]string{"rds": "--allowed-instances", "alone": "--allow-apply"} {
			a := f.waitNotArmed(other, db, "NotAllowed")
			if text := armedCondition(a).Message; !strings.Contains(text, reason) || f.alarmObjectsOf(cloudName(a)).count() > 0 {
				t.Errorf("%s: %q, %+v", db, text, f.alarmObjectsOf(cloudName(a)))
			}
			if n := len(f.events(other, db, "NotAllowed")); n == 0 {
				t.Errorf("no event about %s", db)
			}
		}
	})
}
