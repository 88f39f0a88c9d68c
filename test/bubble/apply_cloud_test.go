// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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
	if !slices.Equal(got, want) {
		f.t.Errorf("%s: status.changes is %v; want %v", name, got, want)
	}
}

// In the swarm, requests are refused and jobs fail, but the oracle does not judge how that is reported.
func TestRefusalsAndFailedJobsOfTheCloudAreReportedAndRetried(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		refusal := simcloud.Refusal{Status: http.StatusRequestEntityTooLarge, Code: "DBS.200046", Message: "The quota has been reached."}
		f := newFleet(t, simcloud.Settings{Refuse: map[string]simcloud.Refusal{"EnlargeVolume": refusal}})
		id := f.databaseWithoutRds("default", "db", smallInstance())
		f.start(applyCloud())
		f.waitArmed("default", "db")
		f.must(f.sim.SetWorkload(id, simcloud.Workload{UsedGB: 93}))
		hasReason := func(reason string) func() bool { return func() bool { return f.hasDecision("db", reason) } }
		newest := func() v1alpha1.Change {
			t.Helper()
			changes := f.autopilot("default", "db").Status.Changes
			if len(changes) == 0 {
				t.Fatal("no change")
			}
			return changes[0]
		}

		f.waitUntil("the refusal is reported", hasReason("QuotaExceeded"))
		time.Sleep(2 * time.Minute)
		d, p := f.autopilot("default", "db").Status.Decisions[0], newest()
		cause := strings.TrimSuffix(refusal.Message, ".")
		if !strings.Contains(d.Message, cause) || !strings.Contains(d.Message, ". Next check at 20") {
			t.Errorf("the decision is %+v", d)
		}
		r := p.Refusal
		if r == nil || r.Reason != "QuotaExceeded" || r.NextTime == nil || r.NextTime.Before(&r.Time) || p.JobID != "" {
			t.Fatalf("the change is %+v, %+v", p, p.Refusal)
		}
		requests := f.sim.Count("rds", "EnlargeVolume")
		time.Sleep(time.Hour)
		if n := f.sim.Count("rds", "EnlargeVolume") - requests; n < 3 || n > 8 { // after 1, 2, 4, 8 and then every 15 minutes
			t.Errorf("requested again %d times in an hour", n)
		}

		f.sim.Configure(func(s *simcloud.Settings) { s.Refuse, s.JobsFail = nil, true })
		f.waitUntil("the failed job is reported", hasReason("JobFailed"))
		if r := newest().Refusal; r == nil || r.Message != "simulated failure" {
			t.Errorf("the refusal is %+v", r)
		}
		requests = f.sim.Count("rds", "EnlargeVolume")
		time.Sleep(3 * time.Hour)
		if n := f.sim.Count("rds", "EnlargeVolume") - requests; n < 5 || n > 15 {
			t.Errorf("requested again %d times in three hours", n)
		}
		f.waitUntil("no job is running", func() bool { return newest().Refusal != nil })
		f.sim.Configure(func(s *simcloud.Settings) { s.JobsFail, s.EnlargeDuration = false, 5*time.Hour })
		f.waitUntil("a job that does not end is reported", hasReason("Stalled"))
		if newest().JobID == "" {
			t.Error("the stalled job is forgotten")
		}
		time.Sleep(5 * time.Hour)
		f.checkChanges("db", "Autopilot 100→110 Completed", "Autopilot 100→110 Failed")
	})
}

// Two namespaces, two installations in one cluster, and two clusters in one project name the same instance. One manages
// it, the others say who does and change nothing. If that one is turned off, another takes over within a sweep.
func TestOneObjectManagesAnInstanceWhereverItIs(t *testing.T) {
	for name, start := range map[string]func(first *fleet) (second *fleet){
		"two namespaces": func(f *fleet) *fleet {
			o := applyCloud()
			o.sweep = 5 * time.Minute
			f.start(o)
			return f
		},
		"two installations": func(f *fleet) *fleet {
			other := &fleet{t: f.t, kube: f.kube, admin: f.admin, sim: f.sim, fault: f.fault, routes: f.routes, own: "second",
				public: "https://second.example.com"}
			f.routes.by["second.example.com"] = other
			f.namespace("second")
			o := applyCloud()
			o.sweep = 5 * time.Minute
			o.namespaces = []string{"default"}
			f.start(o)
			o.namespaces = []string{"other"}
			other.start(o)
			return other
		},
		"two clusters": func(f *fleet) *fleet {
			other := f.addCluster()
			o := applyCloud()
			o.sweep = 5 * time.Minute
			f.start(o)
			other.start(o)
			return other
		},
	} {
		for order, atOnce := range map[string]bool{"one after the other": false, "at once": true} {
			t.Run(name+" "+order, func(t *testing.T) {
				level.InBubble(t, func(t *testing.T) {
					f := newFleet(t, simcloud.Settings{})
					f.namespace("other")
					second := start(f)
					if second.kube != f.kube {
						second.namespace("other")
					}
					id := f.addInstance(smallInstance()).ID
					f.createAutopilot("default", "db", `{"apply":"Cloud","instanceID":"`+id+`"}`)
					if !atOnce {
						f.waitArmed("default", "db")
					}
					second.createAutopilot("other", "also", `{"apply":"Cloud","instanceID":"`+id+`"}`)
					type object struct {
						*fleet
						namespace, name string
					}
					owner, other := object{f, "default", "db"}, object{second, "other", "also"}
					f.waitUntil("one is armed and the other claimed", func() bool {
						a, b := owner.autopilot(owner.namespace, owner.name), other.autopilot(other.namespace, other.name)
						if a == nil || b == nil {
							return false
						}
						if isArmed(b) {
							owner, other, a, b = other, owner, b, a
						}
						return isArmed(a) && armedCondition(b).Reason == "InstanceClaimed"
					})
					if !atOnce && owner.name != "db" {
						t.Error("the second object has taken the instance over")
					}
					a := other.autopilot(other.namespace, other.name)
					if text := armedCondition(a).Message; !strings.HasPrefix(text, owner.namespace+"/"+owner.name) {
						t.Errorf("the message is %q", text)
					}
					f.must(f.sim.SetWorkload(id, simcloud.Workload{UsedGB: 93}))
					time.Sleep(3 * time.Hour)
					in, _ := f.sim.Instance(id)
					if n := f.sim.Count("rds", "EnlargeVolume"); in.VolumeGB != 110 || n != 1 || len(f.sim.Rules()) != 3 {
						t.Errorf("%d GB after %d requests, %d rules", in.VolumeGB, n, len(f.sim.Rules()))
					}
					for _, ch := range other.autopilot(other.namespace, other.name).Status.Changes {
						if ch.By == v1alpha1.ByAutopilot {
							t.Errorf("the other object has the change %+v", ch)
						}
					}
					if n := len(other.events(other.namespace, other.name, "InstanceClaimed")); n != 1 {
						t.Errorf("%d events InstanceClaimed", n)
					}
					owner.patch(owner.raps(owner.namespace), owner.name, `{"spec":{"mode":"Off"}}`)
					off := time.Now()
					other.waitArmed(other.namespace, other.name)
					if took := time.Since(off); took > 6*time.Minute {
						t.Errorf("the other takes over after %v", took)
					}
				})
			})
		}
	}
}

// Rules in Recommend claim nothing, so an object that acts takes the instance over and keeps it.
func TestRecommendClaimsNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		other := f.namespace("other")
		in := f.database("default", "db", smallInstance())
		f.patch(f.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		f.createAutopilot("default", "db", `{"mode":"Recommend"}`)
		o := applyCloud()
		o.sweep = 5 * time.Minute
		f.start(o)
		f.waitArmed("default", "db")
		f.createAutopilot(other, "auto", `{"apply":"Cloud","instanceID":"`+in.ID+`"}`)
		f.waitArmed(other, "auto")
		f.waitNotArmed("default", "db", "InstanceClaimed")
		f.patch(f.raps("default"), "db", `{"spec":{"mode":"Auto"}}`)
		time.Sleep(time.Hour)
		f.waitNotArmed("default", "db", "InstanceClaimed")
		f.waitArmed(other, "auto")
	})
}

// A database that is full when it is turned on is grown as soon as its first rule exists, and also if Cloud Eye creates
// none.
func TestFullDatabaseIsGrownAsSoonAsItsClaimIsDecided(t *testing.T) {
	for name, tc := range map[string]struct {
		settings simcloud.Settings
		fault    *simcloud.Fault // of the creation of rules
		reason   string
	}{
		"with its first rule": {simcloud.Settings{}, nil, "AlarmsInPlace"},
		"no quota":            {simcloud.Settings{RuleQuota: -1}, nil, "QuotaExceeded"},
		"no right":            {simcloud.Settings{}, &simcloud.Fault{Status: http.StatusForbidden, Body: `{"error_code":"ces.0011","error_msg":"no right"}`}, "RuleMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f := newFleet(t, tc.settings)
				if tc.fault != nil {
					f.setFault(faultOf(*tc.fault, "CreateAlarm"))
				}
				id := f.addInstance(instance(twoVCPUs, 100, 93)).ID
				o := applyCloud()
				o.sweep = 5 * time.Minute
				f.start(o)
				f.createAutopilot("default", "db", `{"apply":"Cloud","instanceID":"`+id+`"}`)
				f.waitUntil("its condition is set", func() bool {
					a := f.autopilot("default", "db")
					return armedCondition(a).Reason == tc.reason
				})
				began := time.Now()
				f.waitUntil("it has grown", func() bool { in, _ := f.sim.Instance(id); return in.VolumeGB == 110 })
				if took := time.Since(began); took > 40*time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
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
			if text := armedCondition(a).Message; !strings.Contains(text, reason) || len(f.rulesOf(other, db)) > 0 {
				t.Errorf("%s: %q, %+v", db, text, f.rulesOf(other, db))
			}
			if n := len(f.events(other, db, "NotAllowed")); n == 0 {
				t.Errorf("no event about %s", db)
			}
		}
	})
}
