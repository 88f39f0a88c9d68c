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
	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const fourVCPUs = "rds.mysql.n1.xlarge.2" // the smallest step in CPU from two

// Nobody applies what the Rds asks for, or there is none: the storage and the flavor come all the same, once each.
func TestWithoutAnOperatorADatabaseIsGrownAllTheSame(t *testing.T) {
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, withRds, otcsim.Settings{})
				w.add("full", instance(twoVCPUs, 100, 10), "")
				w.add("busy", instance(twoVCPUs, 100, 10), "")
				w.add("stuck", instance(twoVCPUs, 100, 98), "") // read-only already
				if status := w.in("stuck").Status; status != otcsim.StatusStorageFull {
					t.Fatalf("the full one is in %s", status)
				}
				s := w.start(allowed())
				w.until("all are armed", func() bool { return w.armed(3) })
				w.bear("full", otcsim.Workload{UsedGB: 93})
				w.bear("busy", otcsim.Workload{UsedGB: 10, CPUDemand: 1.9})
				w.until("the flavor has come", func() bool { return w.in("busy").Flavor == fourVCPUs })
				w.bear("busy", otcsim.Workload{UsedGB: 10, CPUDemand: 1.9})
				time.Sleep(time.Hour)
				s.stop()
				w.hasDone("full", "Autopilot 100→110 Completed")
				w.hasDone("stuck", "Autopilot 100→120 Completed")
				w.hasDone("busy", "Autopilot "+twoVCPUs+"→"+fourVCPUs+" Completed")
				if status := w.in("stuck").Status; status != otcsim.StatusActive {
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

// Each way in which the cloud says no is told with its reason, its words and the time of the next try; and it is tried again.
func TestTheCloudsNoIsToldAndTriedAgain(t *testing.T) {
	want := map[string]string{
		"sold out": "SoldOut", "quota": "QuotaExceeded", "times": "QuotaExceeded", "money": "PaymentRequired", "permission": "NotPermitted",
		"state": "InstanceBusy", "full": "StorageFull", "parameter": "CloudRefused",
	}
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			for what, refusal := range otcsim.Refusals() {
				t.Run(what, func(t *testing.T) {
					in := level.InBubble
					if withRds && what != "sold out" {
						in = level.InLongBubble
					}
					in(t, func(t *testing.T) {
						w := newCloudWay(t, withRds, otcsim.Settings{Refuse: map[string]otcsim.Refusal{"EnlargeVolume": refusal}})
						w.add("db", instance(twoVCPUs, 100, 10), "")
						s := w.start(allowed())
						w.until("it is armed", func() bool { return w.armed(1) })
						w.bear("db", otcsim.Workload{UsedGB: 93})
						w.until("it is told", func() bool { return w.decided("default", "db", want[what]) })
						time.Sleep(2 * time.Minute)
						a := w.rap("db")
						if d := a.Status.Decisions[0]; d.Reason != want[what] || !strings.Contains(d.Message, refusal.Message) || !strings.Contains(d.Message, "looking again in") {
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
						w.sim.Configure(func(s *otcsim.Settings) { s.Refuse = nil })
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

// A flavor that is sold out just when it is asked for does not hold up storage, and comes once there is one again.
func TestASoldOutFlavorDoesNotHoldUpStorage(t *testing.T) {
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, withRds, otcsim.Settings{Refuse: map[string]otcsim.Refusal{"ResizeFlavor": otcsim.Refusals()["sold out"]}})
				w.add("db", instance(twoVCPUs, 100, 10), "")
				s := w.start(allowed())
				w.until("it is armed", func() bool { return w.armed(1) })
				w.bear("db", otcsim.Workload{UsedGB: 10, CPUDemand: 1.9})
				w.until("it is sold out", func() bool { return w.decided("default", "db", "SoldOut") })
				w.bear("db", otcsim.Workload{UsedGB: 93, CPUDemand: 1.9})
				begin := time.Now()
				w.until("storage has come", func() bool { return w.in("db").VolumeGB == 110 })
				if took := time.Since(begin); took > 25*time.Minute {
					t.Errorf("storage took %v", took)
				}
				time.Sleep(30 * time.Minute)
				w.sim.Configure(func(s *otcsim.Settings) { s.Refuse = nil })
				w.until("the flavor has come", func() bool { return w.in("db").Flavor == fourVCPUs })
				w.bear("db", otcsim.Workload{UsedGB: 93, CPUDemand: 1})
				time.Sleep(30 * time.Minute)
				s.stop()
				w.hasDone("db", "Autopilot "+twoVCPUs+"→"+fourVCPUs+" Completed", "Autopilot 100→110 Completed")
			})
		})
	}
}

// What goes wrong with the one call that changes something: there is one change, and the status tells the truth.
func TestALostAnswerIsNoSecondChange(t *testing.T) {
	for name, withRds := range bothWays {
		for what, fault := range map[string]otcsim.Fault{
			"reply lost": {Cut: true}, "hangs, done": {Hang: true, Apply: true}, "hangs, not done": {Hang: true}, "502, done": {Status: 502, Apply: true},
			"500, not done": {Status: 500}, "503, not done": {Status: 503, Header: http.Header{"Retry-After": {"3"}}}, "504, done": {Status: 504, Apply: true},
			"429": {Status: 429}, "token ended": {Status: 401}, "no job": {Status: 202, Body: "{}", Apply: true},
		} {
			for _, operation := range []string{"EnlargeVolume", "ResizeFlavor"} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, operation, what), func(t *testing.T) {
					in := level.InBubble
					if what != "reply lost" && what != "500, not done" {
						in = level.InLongBubble
					}
					in(t, func(t *testing.T) {
						w := newCloudWay(t, withRds, otcsim.Settings{})
						w.add("db", instance(twoVCPUs, 100, 10), "")
						s := w.start(allowed())
						w.until("it is armed", func() bool { return w.armed(1) })
						var first sync.Once
						w.breaks(func(r *http.Request) (f *otcsim.Fault) {
							if _, is := otcsim.OperationOf(r); is == operation {
								first.Do(func() { f = &fault })
							}
							return f
						})
						load, to := otcsim.Workload{UsedGB: 93}, "100→110"
						if operation == "ResizeFlavor" {
							load, to = otcsim.Workload{UsedGB: 10, CPUDemand: 1.9}, twoVCPUs+"→"+fourVCPUs
						}
						w.bear("db", load)
						w.until("it has come", func() bool { return len(w.rap("db").Status.Changes) > 0 })
						if operation == "ResizeFlavor" {
							w.bear("db", otcsim.Workload{UsedGB: 10, CPUDemand: 1})
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

// A job that fails is told in the cloud's words and tried again; one that never ends is said loudly.
func TestJobsThatFailOrNeverEnd(t *testing.T) {
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, withRds, otcsim.Settings{JobsFail: true})
				w.add("db", instance(twoVCPUs, 100, 10), "")
				s := w.start(allowed())
				w.until("it is armed", func() bool { return w.armed(1) })
				w.bear("db", otcsim.Workload{UsedGB: 93})
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
				w.sim.Configure(func(s *otcsim.Settings) { s.JobsFail, s.EnlargeDuration = false, 5*time.Hour })
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

// A service that may not read jobs goes by what the instance shows.
func TestAJobThatNobodyMayRead(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, false, otcsim.Settings{JobsFail: true, Refuse: map[string]otcsim.Refusal{"ShowJob": otcsim.Refusals()["permission"]}})
		w.add("db", instance(twoVCPUs, 100, 10), "")
		s := w.start(allowed())
		w.until("it is armed", func() bool { return w.armed(1) })
		w.bear("db", otcsim.Workload{UsedGB: 93})
		w.until("it is said that nothing comes", func() bool { return w.decided("default", "db", "Stalled") })
		w.sim.Configure(func(s *otcsim.Settings) { s.JobsFail = false })
		w.until("it comes in the end", func() bool { return w.in("db").VolumeGB == 110 })
		time.Sleep(10 * time.Minute)
		s.stop()
		w.hasDone("db", "Autopilot 100→110 Completed")
	})
}

// Killed at the call that changes something, or while its job is followed, before or after it is carried out, there is one change
// in the end, and it is ours. The writes to Kubernetes are in autopilot/controller.
func TestKilledAtAChangeThereIsOneInTheCloud(t *testing.T) {
	for name, withRds := range bothWays {
		for operation, load := range map[string]otcsim.Workload{"EnlargeVolume": {UsedGB: 93}, "ResizeFlavor": {UsedGB: 10, CPUDemand: 1.9}} {
			for n := 1; n <= 3; n++ {
				for _, applied := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %s, call %d, applied %t", name, operation, n, applied), func(t *testing.T) {
						in := level.InBubble
						if n > 1 {
							in = level.InLongBubble
						}
						in(t, func(t *testing.T) {
							w := newCloudWay(t, withRds, otcsim.Settings{})
							w.add("db", instance(twoVCPUs, 100, 10), "")
							s := w.start(allowed())
							w.until("it is armed", func() bool { return w.armed(1) })
							g := newGate(n, moment{only: []string{operation, "ShowJob"}, applied: applied})
							w.breaks(g.fault)
							w.bear("db", load)
							if at := s.kill(g, func() bool { return len(w.rap("db").Status.Changes) > 0 }); at == "" {
								t.Fatal("not killed")
							}
							s = w.start(allowed())
							w.until("it has come", func() bool { return len(w.rap("db").Status.Changes) > 0 })
							to := "100→110"
							if operation == "ResizeFlavor" {
								to = twoVCPUs + "→" + fourVCPUs
								w.bear("db", otcsim.Workload{UsedGB: 10, CPUDemand: 1})
							}
							time.Sleep(40 * time.Minute)
							s.stop()
							w.hasDone("db", "Autopilot "+to+" Completed")
							if begun := w.begun(operation); begun > 1 {
								t.Errorf("the cloud began %d changes", begun)
							}
						})
					})
				}
			}
		}
	}
}

// Two objects with one instance hold each other, until one of them is gone. One that may not have the instance holds nobody.
func TestOneInstanceOnTwoObjectsHoldsBoth(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, true, otcsim.Settings{})
		w.add("db", instance(twoVCPUs, 100, 10), "")
		other := w.namespace("other")
		o := allowed()
		s := w.start(o)
		w.until("it is armed", func() bool { return w.armed(1) })
		w.own(other, "same", `{"apply":"Cloud","instanceID":"`+w.ids["db"]+`"}`)
		w.says(other, "same", false, "InstanceUnknown")
		w.says("default", "db", false, "InstanceUnknown")
		w.bear("db", otcsim.Workload{UsedGB: 93})
		time.Sleep(time.Hour)
		if w.in("db").VolumeGB != 100 || w.begun("EnlargeVolume") > 0 {
			t.Error("it is grown, though nobody knows by whom it is to be looked after")
		}
		s.stop()
		o.allowed.Instances = []string{"default/*"}
		s = w.start(o)
		w.says(other, "same", false, autopilot.NotAllowed)
		w.until("its owner's is grown", func() bool { return w.in("db").VolumeGB == 110 })
		time.Sleep(10 * time.Minute)
		s.stop()
		w.hasDone("db", "Autopilot 100→110 Completed")
	})
}

// What the administrator does not allow is not armed, and not changed.
func TestWhatIsNotAllowedIsNotArmed(t *testing.T) {
	for name, withRds := range bothWays {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, withRds, otcsim.Settings{})
				w.add("db", instance(twoVCPUs, 100, 93), "")
				s := w.start(flags{sweep: 5 * time.Minute})
				a := w.says("default", "db", false, autopilot.NotAllowed)
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

// A policy that becomes narrower while a change waits is kept to.
func TestALowerCapHoldsAChangeThatWaits(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, true, otcsim.Settings{Refuse: map[string]otcsim.Refusal{
			"EnlargeVolume": otcsim.Refusals()["quota"], "ResizeFlavor": otcsim.Refusals()["quota"],
		}})
		w.add("full", instance(twoVCPUs, 100, 10), "")
		w.add("busy", instance(twoVCPUs, 100, 10), "")
		s := w.start(allowed())
		w.until("they are armed", func() bool { return w.armed(2) })
		w.bear("full", otcsim.Workload{UsedGB: 93})
		w.bear("busy", otcsim.Workload{UsedGB: 10, CPUDemand: 1.9})
		w.until("both are refused", func() bool {
			return w.decided("default", "full", "QuotaExceeded") && w.decided("default", "busy", "QuotaExceeded")
		})
		for _, name := range []string{"full", "busy"} {
			w.patch(w.raps("default"), name, `{"spec":{"storage":{"maxGB":100},"flavor":{"maxVCPUs":2}}}`)
		}
		time.Sleep(time.Minute)
		w.sim.Configure(func(s *otcsim.Settings) { s.Refuse = nil })
		time.Sleep(3 * time.Hour)
		s.stop()
		if w.begun("EnlargeVolume")+w.begun("ResizeFlavor") > 0 {
			t.Errorf("begun beyond the caps: %d GB, %s", w.in("full").VolumeGB, w.in("busy").Flavor)
		}
	})
}

// Doctor tries the rights to change instances where they are needed, and changes none.
func TestDoctorTriesTheRightsToChangeInstances(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, false, otcsim.Settings{})
		w.add("db", instance(twoVCPUs, 100, 10), "")
		rights := func(a v1alpha1.Apply) doctor.Result {
			return w.examine(t.Context(), "", func(o *doctor.Options) { o.Allowed.Apply, o.Wait = a, time.Second })["rights-rds"]
		}
		if r := rights(v1alpha1.ApplyCloud); r.State != doctor.OK {
			t.Errorf("with the rights: %+v", r)
		}
		no := otcsim.Refusals()["permission"]
		w.sim.Configure(func(s *otcsim.Settings) {
			s.Refuse = map[string]otcsim.Refusal{"EnlargeVolume": no, "ResizeFlavor": no}
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

// An operator that goes back to an older flavor, before or after anybody has seen ours, is not answered by going forth again.
func TestWhoeverGoesBackIsNotAnsweredByGoingForth(t *testing.T) {
	for name, withRds := range bothWays {
		for when, after := range map[string]time.Duration{"before it is seen": 0, "once it is seen": 5 * time.Minute} {
			t.Run(name+", "+when, func(t *testing.T) {
				level.InBubble(t, func(t *testing.T) {
					w := newCloudWay(t, withRds, otcsim.Settings{})
					w.add("db", instance(twoVCPUs, 100, 10), `,"flavor":{"cooldownSeconds":0,"maxChangesPerDay":10}`)
					s := w.start(allowed())
					w.until("it is armed", func() bool { return w.armed(1) })
					busy := otcsim.Workload{UsedGB: 10, CPUDemand: 1.9}
					w.bear("db", busy)
					w.until("the cloud has begun", func() bool { return w.in("db").Status == otcsim.StatusModifying })
					for w.in("db").Flavor != fourVCPUs {
						time.Sleep(time.Second)
					}
					time.Sleep(after)
					w.must(w.sim.ChangeInstance(w.ids["db"], func(in *otcsim.Instance) { in.Flavor = twoVCPUs }))
					want := "RolledBack"
					if !withRds {
						want = "Contested" // nothing asks for ours any more
					}
					w.until("it is said", func() bool { return w.decided("default", "db", want) })
					time.Sleep(4 * time.Hour)
					s.stop()
					if n := w.begun("ResizeFlavor"); n != 1 || w.in("db").Flavor != twoVCPUs {
						t.Errorf("the cloud has begun %d resizes, and has %s", n, w.in("db").Flavor)
					}
				})
			})
		}
	}
}
