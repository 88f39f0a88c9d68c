// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// A database that was restored has another instance, with its old name. What Cloud Eye says of the former one, and keeps
// saying while no rule can be made for the new one, is no reason to change it.
func TestTheAlarmOfAFormerInstanceChangesNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		var refused atomic.Bool
		w := newFew(t, otcsim.Options{Fault: func(r *http.Request) *otcsim.Fault {
			service, operation := otcsim.OperationOf(r)
			if refused.Load() && (service == "smn" || service == "ces" && strings.HasSuffix(operation, "Alarm")) {
				return &otcsim.Fault{Status: http.StatusInternalServerError}
			}
			return nil
		}}, weekDatabase{name: "full", start: instance(twoVCPUs, 100, 10)}, weekDatabase{name: "busy", start: instance(twoVCPUs, 100, 10)})
		w.arm()
		w.bear("full", otcsim.Workload{UsedGB: 94})
		w.bear("busy", otcsim.Workload{UsedGB: 10, CPUDemand: 2})
		w.allAlarmed()
		for _, d := range w.databases {
			restored := instance(twoVCPUs, 100, 20)
			restored.Name, restored.Workload.CPUDemand = d.name, 0.1
			restored, err := w.sim.AddInstance(restored)
			if err != nil {
				t.Fatal(err)
			}
			w.ids[d.name] = restored.ID
			w.kube.changeRds(d.name, func(r *otcv1.Rds) { r.Status.ID = restored.ID })
		}
		refused.Store(true)
		stop := w.lead()
		time.Sleep(40 * time.Minute)
		for _, d := range w.databases {
			if p := w.patches(d.name); len(p) > 0 {
				t.Errorf("%s has 20 of 100 GB used and 5 %% CPU, and is patched to %d GB, flavor %q", d.name, p[0].volumeGB, p[0].flavor)
			}
			if meta.IsStatusConditionTrue(w.autopilot(d.name).Status.Conditions, v1alpha1.ConditionArmed) {
				t.Errorf("%s is armed, though no rule could be made for its instance", d.name)
			}
		}
		refused.Store(false)
		time.Sleep(20 * time.Minute)
		w.allArmed("once rules can be made")
		w.bear("full", otcsim.Workload{UsedGB: 94})
		time.Sleep(30 * time.Minute)
		stop()
		if p := w.patches("full"); len(p) != 1 || p[0].volumeGB != 110 {
			t.Errorf("the new instance is full, and the patches are %+v, want one to 110 GB", p)
		}
		if p := w.patches("busy"); len(p) > 0 {
			t.Errorf("busy is patched to flavor %q for the load of its former instance", p[0].flavor)
		}
	})
}

// A round that waits for the cloud can be overtaken by its user.
func TestNothingIsPatchedAfterTheUserSaidNo(t *testing.T) {
	for name, say := range map[string]func(*otcv1.Rds, string){
		"spec.autopilot: false": func(r *otcv1.Rds, _ string) { r.Spec.Autopilot = new(false) },
		"another status.id":     func(r *otcv1.Rds, id string) { r.Status.ID = id },
	} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				var slow atomic.Bool
				var once sync.Once
				var w *week
				var other otcsim.Instance
				w = newFew(t, otcsim.Options{Fault: func(r *http.Request) *otcsim.Fault {
					alarmed := func(r otcsim.Rule) bool { return r.State == otcsim.StateAlarm } // a sweep reads without an alarm, too
					if _, operation := otcsim.OperationOf(r); !slow.Load() || operation != "BatchMetricData" || !slices.ContainsFunc(w.sim.Rules(), alarmed) {
						return nil
					}
					once.Do(func() {
						time.AfterFunc(2*time.Second, func() {
							w.kube.changeRds("db", func(r *otcv1.Rds) { say(r, other.ID) })
						})
					})
					return &otcsim.Fault{Delay: 8 * time.Second}
				}}, weekDatabase{name: "db", start: instance(twoVCPUs, 100, 10)})
				in := instance(twoVCPUs, 100, 20)
				in.Name = "other"
				var err error
				if other, err = w.sim.AddInstance(in); err != nil {
					t.Fatal(err)
				}
				w.arm()
				stop := w.lead()
				time.Sleep(time.Minute)
				slow.Store(true)
				w.bear("db", otcsim.Workload{UsedGB: 94})
				w.allAlarmed()
				time.Sleep(20 * time.Minute)
				stop()
				said := w.liveRdsOf("db")
				if on := said.Spec.Autopilot; (on == nil || *on) && said.Status.ID != other.ID {
					t.Fatal("the evidence was never read: nothing was said while a round waited for it")
				}
				if p := w.patches("db"); len(p) > 0 {
					t.Errorf("patched to %d GB, %v after %s", p[0].volumeGB, time.Since(p[0].at), name)
				}
			})
		})
	}
}
