// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const fourVCPUs = "rds.mysql.n1.xlarge.2" // the smallest step in CPU from two

// Without an operator or without an Rds, the service changes storage and flavor in the cloud, once each.
func TestApplyCloudGrowsADatabaseWithoutAnOperator(t *testing.T) {
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, withRds, simcloud.Settings{})
				w.add("full", instance(twoVCPUs, 100, 10), "")
				w.add("busy", instance(twoVCPUs, 100, 10), "")
				w.add("stuck", instance(twoVCPUs, 100, 98), "") // read-only already
				if status := w.in("stuck").Status; status != simcloud.StatusStorageFull {
					t.Fatalf("the full one is in %s", status)
				}
				s := w.start(allowed())
				w.until("all are armed", func() bool { return w.armed(3) })
				w.bear("full", simcloud.Workload{UsedGB: 93})
				w.bear("busy", simcloud.Workload{UsedGB: 10, CPUDemand: 1.9})
				w.until("the flavor has come", func() bool { return w.in("busy").Flavor == fourVCPUs })
				w.bear("busy", simcloud.Workload{UsedGB: 10, CPUDemand: 1.9})
				time.Sleep(time.Hour)
				s.stop()
				w.hasDone("full", "Autopilot 100→110 Completed")
				w.hasDone("stuck", "Autopilot 100→120 Completed")
				w.hasDone("busy", "Autopilot "+twoVCPUs+"→"+fourVCPUs+" Completed")
				if status := w.in("stuck").Status; status != simcloud.StatusActive {
					t.Errorf("the full one is in %s once it has 120 GB", status)
				}
				if n, m := w.begun("EnlargeVolume"), w.begun("ResizeFlavor"); n != 2 || m != 1 {
					t.Errorf("the cloud began %d enlargements and %d resizes, want 2 and 1", n, m)
				}
				if !withRds && len(w.events("default", "full", "GrowVolume")) == 0 {
					t.Error("no event tells of it")
				}
			})
		})
	}
}

// A refusal by the cloud is reported with its reason, the cloud's message and the time of the next try. The service retries it.
func TestApplyCloudReportsARefusalAndRetries(t *testing.T) {
	want := map[string]string{"quota": "QuotaExceeded", "state": "InstanceBusy", "parameter": "CloudRefused"}
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			for what := range want {
				refusal := simcloud.Refusals()[what]
				t.Run(what, func(t *testing.T) {
					level.InBubble(t, func(t *testing.T) {
						w := newCloudWay(t, withRds, simcloud.Settings{Refuse: map[string]simcloud.Refusal{"EnlargeVolume": refusal}})
						w.add("db", instance(twoVCPUs, 100, 10), "")
						s := w.start(allowed())
						w.until("it is armed", func() bool { return w.armed(1) })
						w.bear("db", simcloud.Workload{UsedGB: 93})
						w.until("it is told", func() bool { return w.decided("default", "db", want[what]) })
						time.Sleep(2 * time.Minute)
						a := w.rap("db")
						if d := a.Status.Decisions[0]; d.Reason != want[what] || !strings.Contains(d.Message, strings.TrimSuffix(refusal.Message, ".")) || !strings.Contains(d.Message, ". Next check at 20") {
							t.Errorf("the decision is %+v", d)
						}
						p := a.Status.Pending
						if p == nil || p.Refusal == nil || p.Refusal.Reason != want[what] || p.Refusal.NextTime == nil || p.Refusal.NextTime.Before(&p.Refusal.Time) || p.JobID != "" {
							t.Fatalf("pending is %+v, %+v", p, p.Refusal)
						}
						asked := w.sim.Count("rds", "EnlargeVolume")
						time.Sleep(time.Hour)
						if n := w.sim.Count("rds", "EnlargeVolume") - asked; n < 3 || what != "state" && n > 8 {
							t.Errorf("asked again %d times in an hour", n)
						}
						w.sim.Configure(func(s *simcloud.Settings) { s.Refuse = nil })
						w.until("it comes", func() bool { return w.in("db").VolumeGB == 110 })
						time.Sleep(10 * time.Minute)
						s.stop()
						w.hasDone("db", "Autopilot 100→110 Completed")
						if n := w.begun("EnlargeVolume"); n != 1 {
							t.Errorf("the cloud began %d enlargements", n)
						}
					})
				})
			}
		})
	}
}

// If the answer to the changing call is lost, the cloud makes one change and the status records it.
func TestApplyCloudMakesOneChangeWhenAnAnswerIsLost(t *testing.T) {
	for name, withRds := range bothWays {
		for what, fault := range map[string]simcloud.Fault{
			"reply lost": {Cut: true}, "hangs, done": {Hang: true, Apply: true}, "500, not done": {Status: 500}, "no job": {Status: 202, Body: "{}", Apply: true},
		} {
			for _, operation := range []string{"EnlargeVolume", "ResizeFlavor"} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, operation, what), func(t *testing.T) {
					level.InBubble(t, func(t *testing.T) {
						w := newCloudWay(t, withRds, simcloud.Settings{})
						w.add("db", instance(twoVCPUs, 100, 10), "")
						s := w.start(allowed())
						w.until("it is armed", func() bool { return w.armed(1) })
						var first sync.Once
						w.breaks(func(r *http.Request) (f *simcloud.Fault) {
							if _, is := simcloud.OperationOf(r); is == operation {
								first.Do(func() { f = &fault })
							}
							return f
						})
						load, to := simcloud.Workload{UsedGB: 93}, "100→110"
						if operation == "ResizeFlavor" {
							load, to = simcloud.Workload{UsedGB: 10, CPUDemand: 1.9}, twoVCPUs+"→"+fourVCPUs
						}
						w.bear("db", load)
						w.until("it has come", func() bool { return len(w.rap("db").Status.Changes) > 0 })
						if operation == "ResizeFlavor" {
							w.bear("db", simcloud.Workload{UsedGB: 10, CPUDemand: 1})
						}
						time.Sleep(time.Hour)
						s.stop()
						w.hasDone("db", "Autopilot "+to+" Completed")
						begun := w.begun(operation)
						if fault.Apply && fault.Status != 202 || fault.Cut {
							begun++ // its answer was not that
						}
						if begun > 2 || w.in("db").VolumeGB > 110 {
							t.Errorf("begun %d times, %d GB", begun, w.in("db").VolumeGB)
						}
					})
				})
			}
		}
	}
}

// A failed job is reported with the cloud's message and retried. A job that never ends is reported as Stalled.
func TestApplyCloudReportsJobsThatFailOrNeverEnd(t *testing.T) {
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, withRds, simcloud.Settings{JobsFail: true})
				w.add("db", instance(twoVCPUs, 100, 10), "")
				s := w.start(allowed())
				w.until("it is armed", func() bool { return w.armed(1) })
				w.bear("db", simcloud.Workload{UsedGB: 93})
				w.until("the failure is told", func() bool { return w.decided("default", "db", "JobFailed") })
				if r := w.rap("db").Status.Pending.Refusal; r == nil || r.Message != "simulated failure" {
					t.Errorf("the refusal is %+v", r)
				}
				before := w.begun("EnlargeVolume")
				time.Sleep(3 * time.Hour)
				if n := w.begun("EnlargeVolume") - before; n < 5 || n > 15 {
					t.Errorf("begun again %d times in three hours, want every 15 minutes in the end", n)
				}
				w.until("none is running", func() bool { return w.rap("db").Status.Pending.JobID == "" })
				w.sim.Configure(func(s *simcloud.Settings) { s.JobsFail, s.EnlargeDuration = false, 5*time.Hour })
				w.until("a job that does not end is said", func() bool { return w.decided("default", "db", "Stalled") })
				if p := w.rap("db").Status.Pending; p == nil || p.JobID == "" {
					t.Errorf("pending is %+v", p)
				}
				time.Sleep(5 * time.Hour)
				s.stop()
				w.hasDone("db", "Autopilot 100→110 Completed")
			})
		})
	}
}

// A team cannot stop another team's autopilot by naming its instance, neither with an Rds nor without one, not even with an Rds
// that is older and was armed for another instance.
func TestInstanceStaysWithObjectThatWasArmedFirst(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, true, simcloud.Settings{})
		other := w.namespace("other")
		s := w.start(allowed())
		w.database(other, "old", plain())
		w.armedNow(other, "old")
		time.Sleep(time.Hour)
		w.add("db", instance(twoVCPUs, 100, 10), "")
		w.armedNow("default", "db")
		w.own(other, "same", `{"apply":"Cloud","instanceID":"`+w.ids["db"]+`"}`)
		w.patch(w.rdss(other), "old", `{"status":{"id":"`+w.ids["db"]+`"}}`)
		began := time.Now()
		for _, held := range []string{"same", "old"} {
			a := w.says(other, held, false, "InstanceUnknown")
			if text := armedCondition(a).Message; !strings.HasPrefix(text, "default/db names the same instance and was first") {
				t.Errorf("%s: %q", held, text)
			}
			w.until("an event reports "+held, func() bool { return len(w.events(other, held, "InstanceUnknown")) > 0 })
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it is reported after %s", took)
		}
		time.Sleep(time.Hour)
		w.armedNow("default", "db")
		w.bear("db", simcloud.Workload{UsedGB: 93})
		w.until("its owner's is grown", func() bool { return w.in("db").VolumeGB == 110 })
		time.Sleep(10 * time.Minute)
		for _, held := range []string{"same", "old"} {
			w.says(other, held, false, "InstanceUnknown")
			if n := len(w.events(other, held, "InstanceUnknown")); n > 2 { // one on the Rds, one on the RdsAutopilot
				t.Errorf("%d events about %s", n, held)
			}
		}
		w.delete(w.rdss("default"), "db")
		w.delete(w.raps("default"), "db")
		w.delete(w.raps(other), "same")
		w.armedNow(other, "old")
		s.stop()
	})
}

// TestDormantObjectClaimsNothing has an older Rds without autopilot that names the instance, and turns its owner off and on.
func TestDormantObjectClaimsNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		other := f.namespace("other")
		f.rds(other, "dormant", spec(map[string]any{}), "in-later")
		time.Sleep(time.Hour)
		in := f.database("default", "db", plain())
		f.patch(f.rdss(other), "dormant", `{"status":{"id":"`+in.ID+`"}}`)
		s := f.start(flags{sweep: 5 * time.Minute})
		f.armedNow("default", "db")
		f.patch(f.raps("default"), "db", `{"spec":{"mode":"Off"}}`)
		f.says("default", "db", false, "NotEnabled")
		f.patch(f.raps("default"), "db", `{"spec":{"mode":"Auto"}}`)
		f.armedNow("default", "db")
		s.stop()
	})
}

// The list of instances holds for an Rds too, with apply: Operator as well.
func TestUnlistedRdsIsNotArmed(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		other := f.namespace("other")
		s := f.start(flags{sweep: 5 * time.Minute, allowed: autopilot.Allowed{Apply: v1alpha1.ApplyOperator, Instances: []string{"default/*"}}})
		f.rds(other, "same", spec(map[string]any{"autopilot": true}), "in-later")
		f.says(other, "same", false, "NotAllowed")
		in := f.database("default", "db", plain())
		f.armedNow("default", "db")
		f.patch(f.rdss(other), "same", `{"status":{"id":"`+in.ID+`"}}`)
		time.Sleep(10 * time.Minute)
		a := f.says(other, "same", false, "NotAllowed")
		f.armedNow("default", "db")
		if text := armedCondition(a).Message; !strings.Contains(text, "--allowed-instances") || !strings.Contains(text, in.ID) {
			t.Error(text)
		}
		if n := len(f.events(other, "same", "NotAllowed")); n == 0 {
			t.Error("no event reports it")
		}
		s.stop()
	})
}

// The service neither arms nor changes an object that the administrator does not allow.
func TestDisallowedObjectsAreNotArmed(t *testing.T) {
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, withRds, simcloud.Settings{})
				w.add("db", instance(twoVCPUs, 100, 93), "")
				s := w.start(flags{sweep: 5 * time.Minute})
				a := w.says("default", "db", false, "NotAllowed")
				time.Sleep(time.Hour)
				s.stop()
				if n := w.sim.Count("smn", "CreateTopic") + w.sim.Count("ces", "CreateAlarm"); n > 0 || w.in("db").VolumeGB != 100 {
					t.Errorf("%d things were made in the cloud, the volume has %d GB", n, w.in("db").VolumeGB)
				}
				for _, c := range a.Status.Conditions {
					if c.Type == v1alpha1.ConditionReady && c.Status == "True" {
						t.Error("it says that it is ready")
					}
				}
			})
		})
	}
}

// Doctor checks the rights to change instances if apply: Cloud is allowed, and changes no instance.
func TestDoctorChecksTheRightsToChangeInstances(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, false, simcloud.Settings{})
		w.add("db", instance(twoVCPUs, 100, 10), "")
		rights := func(a v1alpha1.Apply) doctor.Result {
			return w.examine(t.Context(), "db", func(o *doctor.Options) { withApplyCloud(o); o.Allowed.Apply, o.Wait = a, time.Second })["rights-change"]
		}
		if r := rights(v1alpha1.ApplyCloud); r.State != doctor.OK {
			t.Errorf("with the rights: %+v", r)
		}
		no := simcloud.Refusals()["permission"]
		w.sim.Configure(func(s *simcloud.Settings) {
			s.Refuse = map[string]simcloud.Refusal{"EnlargeVolume": no, "ResizeFlavor": no}
		})
		if r := rights(v1alpha1.ApplyCloud); r.State != doctor.Failed || !strings.Contains(fmt.Sprint(r), "rds:instance:extendSpace") || !strings.Contains(fmt.Sprint(r), "rds:instance:modifySpec") {
			t.Errorf("without the rights: %+v", r)
		}
		if r := rights(v1alpha1.ApplyOperator); r.State != doctor.OK {
			t.Errorf("where they are not needed: %+v", r)
		}
		if w.begun("EnlargeVolume")+w.begun("ResizeFlavor") > 0 {
			t.Error("something was changed")
		}
	})
}
