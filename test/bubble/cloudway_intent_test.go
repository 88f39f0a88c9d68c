// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// refuse makes the cloud refuse an operation, or no longer refuse any.
func (w *cloudWay) refuse(operation, cause string) {
	w.sim.Configure(func(s *simcloud.Settings) {
		s.Refuse = nil
		if operation != "" {
			s.Refuse = map[string]simcloud.Refusal{operation: simcloud.Refusals()[cause]}
		}
	})
}

// What the cloud refused is made later only if there is still a reason, and then as large as it has to be by then.
func TestApplyCloudDecidesAgainWhatTheCloudRefused(t *testing.T) {
	busy, idle := simcloud.Workload{UsedGB: 10, CPUDemand: 1.95}, simcloud.Workload{UsedGB: 10, CPUDemand: 0.1}
	for name, tc := range map[string]struct {
		operation, policy, refused string // refused: the reason that is reported
		inst                       simcloud.Instance
		load                       simcloud.Workload
		meanwhile                  func(*cloudWay)
		want                       []string // changes of the status
	}{
		"the CPU is idle by now": {
			"ResizeFlavor", "", "InstanceBusy", instance(twoVCPUs, 100, 10), busy,
			func(w *cloudWay) { w.bear("db", idle) }, nil,
		},
		"the metric is off by now": {
			"ResizeFlavor", "", "InstanceBusy", instance(twoVCPUs, 100, 10), busy,
			func(w *cloudWay) { w.patch(w.raps("default"), "db", `{"spec":{"flavor":{"cpu":{"enabled":false}}}}`) }, nil,
		},
		"the cap is lower by now": {
			"EnlargeVolume", `,"storage":{"stepGB":100,"maxGB":400}`, "InstanceBusy", instance(twoVCPUs, 40, 10), simcloud.Workload{UsedGB: 34},
			func(w *cloudWay) { w.patch(w.raps("default"), "db", `{"spec":{"storage":{"stepGB":10,"maxGB":100}}}`) }, []string{"Autopilot 40→50 Completed"},
		},
		"somebody has made it larger by now": {
			"EnlargeVolume", `,"storage":{"stepGB":50}`, "InstanceBusy", instance(twoVCPUs, 100, 10), simcloud.Workload{UsedGB: 93},
			func(w *cloudWay) {
				w.must(w.sim.ChangeInstance(w.ids["db"], func(in *simcloud.Instance) { in.VolumeGB = 120 }))
			}, []string{"Other 100→120 Completed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, false, simcloud.Settings{})
				w.add("db", tc.inst, tc.policy)
				s := w.start(allowed())
				w.until("it is armed", func() bool { return w.armed(1) })
				w.refuse(tc.operation, "state")
				w.bear("db", tc.load)
				w.until("it is refused", func() bool { return w.decided("default", "db", tc.refused) && w.sim.Count("rds", tc.operation) > 0 })
				tc.meanwhile(w)
				time.Sleep(15 * time.Minute)
				w.refuse("", "")
				time.Sleep(time.Hour)
				s.stop()
				w.hasDone("db", tc.want...)
			})
		})
	}
}

// A person has set a larger size in the Rds, and there is no operator to apply it.
func TestApplyCloudRequestsTheLargerSizeOfTheRds(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, true, simcloud.Settings{})
		w.add("free", instance(twoVCPUs, 100, 10), "")
		w.add("capped", instance(twoVCPUs, 100, 10), `,"storage":{"maxGB":150}`)
		s := w.start(allowed())
		w.until("both are armed", func() bool { return w.armed(2) })
		for _, name := range []string{"free", "capped"} {
			w.patch(w.rdss("default"), name, `{"spec":{"volumesize":200}}`)
		}
		time.Sleep(20 * time.Minute)
		if n := w.begun("EnlargeVolume"); n > 0 {
			t.Errorf("%d enlargements without an alarm", n)
		}
		for _, name := range []string{"free", "capped"} {
			w.bear(name, simcloud.Workload{UsedGB: 99.5})
		}
		time.Sleep(30 * time.Minute)
		s.stop()
		w.hasDone("free", "Autopilot 100→200 Completed")
		if free, capped := w.in("free").VolumeGB, w.in("capped").VolumeGB; free != 200 || capped != 150 || w.rdsSpec("capped")["volumesize"] != int64(200) {
			t.Errorf("they have %d and %d GB, want 200 and 150", free, capped)
		}
	})
}

// No change is allowed for hours, by the cloud or by an admission policy, and then all are.
func TestFleetLimitHoldsAfterAFreezeOfChanges(t *testing.T) {
	for name, byCloud := range map[string]bool{"by the cloud": true, "by an admission policy, beside an operator": false} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, !byCloud, simcloud.Settings{})
				const databases = 10
				for n := range databases {
					name := fmt.Sprint("db-", n)
					w.add(name, instance(twoVCPUs, 100, 10), "")
					if !byCloud {
						w.patch(w.raps("default"), name, `{"spec":{"apply":"Operator"}}`)
					}
				}
				if !byCloud {
					w.operator()
				}
				s := w.start(allowed())
				w.until("all are armed", func() bool { return w.armed(databases) })
				w.refuse("ResizeFlavor", "parameter")
				w.kube.SetAdmit(func(write simkube.Write) error {
					if !byCloud && write.Manager == "rds-autopilot" && write.New.GetKind() == otcv1.Kind {
						return errors.New("no changes on Sundays")
					}
					return nil
				})
				for name := range w.ids {
					w.bear(name, simcloud.Workload{UsedGB: 10, CPUDemand: 1.95})
				}
				time.Sleep(3 * time.Hour)
				w.refuse("", "")
				w.kube.SetAdmit(nil)
				most := 0
				for range 4 * 60 {
					time.Sleep(30 * time.Second)
					changing := 0
					for name := range w.ids {
						in := w.in(name)
						if in.Status == simcloud.StatusModifying {
							changing++
						} else if in.Flavor != twoVCPUs {
							w.bear(name, simcloud.Workload{UsedGB: 10, CPUDemand: 1})
						}
					}
					most = max(most, changing)
				}
				s.stop()
				if n := w.begun("ResizeFlavor"); most != 3 || n != databases {
					t.Errorf("%d flavors changed at the same time, and %d in all; want 3 of %d", most, n, databases)
				}
			})
		})
	}
}

// Somebody resets the Rds while the cloud makes the change. Its end is known all the same.
func TestRevertedRdsDoesNotHideARunningJob(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newCloudWay(t, true, simcloud.Settings{EnlargeDuration: 20 * time.Minute})
		w.add("db", instance(twoVCPUs, 100, 10), "")
		s := w.start(allowed())
		w.until("it is armed", func() bool { return w.armed(1) })
		w.must(w.sim.ChangeInstance(w.ids["db"], func(in *simcloud.Instance) { in.FailingJobs = 1 }))
		w.bear("db", simcloud.Workload{UsedGB: 93})
		w.until("the job runs", func() bool { return w.begun("EnlargeVolume") == 1 })
		time.Sleep(time.Minute)
		w.patch(w.rdss("default"), "db", `{"spec":{"volumesize":100}}`)
		time.Sleep(10 * time.Minute)
		if a := w.rap("db"); a.Status.Pending == nil || len(a.Status.Changes) > 0 {
			t.Errorf("pending %+v, changes %+v while the job runs", a.Status.Pending, a.Status.Changes)
		}
		w.until("the failure is told", func() bool { return w.decided("default", "db", "JobFailed") })
		w.until("it comes", func() bool { return w.in("db").VolumeGB == 110 })
		s.stop()
	})
}

// A growth that is late says so.
func TestGrowthOfAFullDatabaseSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		hidden bool // the cloud does not report STORAGE FULL
		says   string
	}{
		"STORAGE FULL":          {false, "the instance is in STORAGE FULL (read-only), and the cloud may refuse the growth"},
		"read-only by its fill": {true, "the database is read-only until it has grown"},
	} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newCloudWay(t, false, simcloud.Settings{HideStorageFull: tc.hidden})
				w.add("db", instance(twoVCPUs, 100, 98), "")
				s := w.start(allowed())
				w.until("it is grown", func() bool { return w.in("db").VolumeGB == 120 })
				s.stop()
				for _, d := range w.rap("db").Status.Decisions {
					if d.Action == "GrowVolume" && !strings.Contains(d.Message, tc.says) {
						t.Errorf("the record says %q", d.Message)
					}
				}
				told := w.events("default", "db", "GrowVolume")
				if len(told) != 1 || !strings.Contains(told[0].Note, tc.says) {
					t.Errorf("the events are %+v", told)
				}
			})
		})
	}
}
