// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// spec is an Rds of a plain instance, with more fields or without spec.autopilot.
func spec(more map[string]any) map[string]any {
	s := map[string]any{"datastoretype": "MySQL", "datastoreversion": "8.0", "flavorref": small, "volumesize": int64(100), "volumetype": "CLOUDSSD"}
	maps.Copy(s, more)
	return s
}

func (f *fleet) instance(in simcloud.Instance) string {
	f.t.Helper()
	made, err := f.sim.AddInstance(in)
	f.must(err)
	return made.ID
}

// gone waits until there is no autopilot of that name, and nothing in the cloud of the one that was.
func (f *fleet) gone(was *v1alpha1.RdsAutopilot) {
	f.t.Helper()
	f.until(was.Name+" is gone", func() bool {
		a := f.autopilot(was.Namespace, was.Name)
		return (a == nil || a.UID != was.UID) && f.thingsOf(name(was)).count() == 0
	})
}

// released waits until an autopilot holds nothing in the cloud, for that reason.
func (f *fleet) released(namespace, db, reason string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	var a *v1alpha1.RdsAutopilot
	f.until(db+" holds nothing", func() bool {
		a = f.autopilot(namespace, db)
		return a != nil && len(a.Finalizers) == 0 && armedCondition(a).Reason == reason && !isArmed(a)
	})
	if left := f.thingsOf(name(a)); left.count() > 0 || a.Status.Alarms.TopicURN != "" {
		f.t.Errorf("%s has %+v, its record %+v", db, left, a.Status.Alarms)
	}
	return a
}

func TestRdsAutopilotLifeCycle(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		s := f.start(flags{}) // nothing here waits for a sweep
		s.rest()

		step(t, "the Rds is deleted", func(t *testing.T) {
			f.database("default", "deleted", plain())
			f.own("default", "mine", `{"mode":"Recommend"}`)
			f.rds("default", "mine", spec(nil), f.instance(plain()))
			deleted, mine := f.armedNow("default", "deleted"), f.armedNow("default", "mine")
			f.delete(f.rdss("default"), "deleted")
			f.delete(f.rdss("default"), "mine")
			f.gone(deleted)
			if a := f.released("default", "mine", "InstanceUnknown"); a.UID != mine.UID || a.Spec.Mode != v1alpha1.ModeRecommend {
				t.Errorf("a person's autopilot is %+v", a)
			}
			f.rds("default", "mine", spec(nil), f.instance(plain()))
			f.whole(t, f.armedNow("default", "mine"))
		})

		step(t, "the Rds is recreated under the same name", func(t *testing.T) {
			f.database("default", "recreated", plain())
			first := f.armedNow("default", "recreated")
			f.delete(f.rdss("default"), "recreated")
			f.rds("default", "recreated", spec(map[string]any{"autopilot": true}), f.instance(plain()))
			f.gone(first)
			f.until("another one is armed", func() bool {
				a := f.autopilot("default", "recreated")
				return a != nil && a.UID != first.UID && isArmed(a)
			})
			second := f.whole(t, f.autopilot("default", "recreated"))
			if n := f.thingsOf(name(first)).count(); n > 0 || len(second.rules) != 3 {
				t.Errorf("%d things of the first are left", n)
			}
		})

		step(t, "there is no instance yet", func(t *testing.T) {
			f.rds("default", "early", spec(map[string]any{"autopilot": true}), "")
			a := f.says("default", "early", false, "InstanceUnknown")
			if n := f.thingsOf(name(a)).count(); n > 0 || !strings.Contains(armedCondition(a).Message, "status.id") {
				t.Errorf("%q, %d things in the cloud", armedCondition(a).Message, n)
			}
			id := f.instance(plain())
			f.patch(f.rdss("default"), "early", `{"status":{"id":"`+id+`"}}`)
			f.whole(t, f.armedNow("default", "early"))
		})

		step(t, "another instance comes under the name", func(t *testing.T) {
			in := f.database("default", "exchanged", plain())
			f.armedNow("default", "exchanged")
			f.must(f.sim.ChangeInstance(in.ID, func(i *simcloud.Instance) { i.VolumeGB, i.Workload.UsedGB = 110, 103 }))
			var before *v1alpha1.RdsAutopilot
			f.until("there is a change of others and one of ours is pending", func() bool {
				before = f.autopilot("default", "exchanged")
				return before.Status.Pending != nil && len(before.Status.Changes) > 0
			})
			was := f.thingsOf(name(before))
			id := f.instance(simcloud.Instance{Flavor: small, VolumeGB: 200, Workload: simcloud.Workload{UsedGB: 10}})
			f.patch(f.rdss("default"), "exchanged", `{"status":{"id":"`+id+`"}}`)
			var a *v1alpha1.RdsAutopilot
			f.until("the rules watch the other one", func() bool {
				a = f.autopilot("default", "exchanged")
				return isArmed(a) && len(a.Status.Alarms.Rules) == 3 && !slices.ContainsFunc(a.Status.Alarms.Rules, func(r v1alpha1.Rule) bool {
					return r.Dimension != "rds_cluster_id:"+id
				})
			})
			is := f.whole(t, a)
			for _, r := range is.rules {
				if slices.ContainsFunc(was.rules, func(x simcloud.Rule) bool { return x.ID == r.ID }) {
					t.Errorf("rule %s is of the old instance", r.Name)
				}
			}
			if a.Status.Pending != nil || len(a.Status.Changes) > 0 || a.Status.Baseline.VolumeGB != 200 || a.Status.Instance.ID != id {
				t.Errorf("it remembers the old instance: %+v", a.Status)
			}
			if events := f.events("default", "exchanged", "Repaired"); len(events) > 0 {
				t.Errorf("nobody broke anything: %+v", events[0].Note)
			}
		})

		step(t, "foreground deletion does not wait for us", func(t *testing.T) {
			f.database("default", "foreground", plain())
			a := f.armedNow("default", "foreground")
			foreground := metav1.DeletePropagationForeground
			f.must(f.rdss("default").Delete(t.Context(), "foreground", metav1.DeleteOptions{PropagationPolicy: &foreground}))
			f.released("default", "foreground", "NotEnabled")
			rds, err := f.rdss("default").Get(t.Context(), "foreground", metav1.GetOptions{})
			f.must(err)
			// The garbage collector waits for dependents that block; nobody else holds the Rds up.
			if block := a.OwnerReferences[0].BlockOwnerDeletion; !slices.Equal(rds.GetFinalizers(), []string{metav1.FinalizerDeleteDependents}) || block != nil && *block {
				t.Errorf("finalizers %v, blockOwnerDeletion %v", rds.GetFinalizers(), block)
			}
			f.patch(f.rdss("default"), "foreground", `{"metadata":{"finalizers":null}}`)
			f.gone(a)
		})

		step(t, "the operator's own autopilot is on as well", func(t *testing.T) {
			f.rds("default", "endpoint", spec(map[string]any{"autopilot": true, "endpoint": "https://example.com/"}), f.instance(plain()))
			f.armedNow("default", "endpoint")
			f.until("both objects say so", func() bool { return len(f.events("default", "endpoint", "OperatorAutopilot")) == 2 })
			for _, e := range f.events("default", "endpoint", "OperatorAutopilot") {
				if e.Type != corev1.EventTypeWarning || e.Series != nil || !strings.Contains(e.Note, "spec.endpoint") {
					t.Errorf("told on the %s: %+v", e.Regarding.Kind, e)
				}
			}
		})

		step(t, "the cloud's own autoscaling is on as well", func(t *testing.T) {
			in := f.database("default", "native", simcloud.Instance{
				Flavor: small, VolumeGB: 100, AutoScale: simcloud.AutoScale{On: true, LimitGB: 130, TriggerThreshold: 15},
			})
			f.armedNow("default", "native")
			// The cloud comes first, at 85 %, up to its limit; then it is our turn, from there on.
			f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 87}))
			f.until("the cloud has grown it", func() bool {
				i, _ := f.sim.Instance(in.ID)
				return i.VolumeGB == 120 && i.Status == simcloud.StatusActive
			})
			f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 118}))
			f.until("the autopilot grows it further", func() bool { return f.wanted("native") > 100 })
			a := f.autopilot("default", "native")
			grown := slices.ContainsFunc(a.Status.Changes, func(ch v1alpha1.Change) bool {
				return ch.Kind == v1alpha1.KindVolume && ch.By == v1alpha1.ByOther && ch.Outcome == v1alpha1.OutcomeCompleted
			})
			if p := a.Status.Pending; !grown || p == nil || f.wanted("native") <= 120 || p.To != fmt.Sprint(f.wanted("native")) {
				t.Errorf("pending %+v, changes %+v, volumesize %d", p, a.Status.Changes, f.wanted("native"))
			}
		})

		step(t, "the cloud cannot be reached while removing", func(t *testing.T) {
			f.database("default", "held", plain())
			f.database("default", "abandoned", plain())
			f.armedNow("default", "held")
			abandoned := f.armedNow("default", "abandoned")
			mend := f.breaks(func(r *http.Request) *simcloud.Fault {
				if _, operation := simcloud.OperationOf(r); operation == "DeleteTopic" {
					return &simcloud.Fault{Status: http.StatusServiceUnavailable}
				}
				return nil
			})
			defer mend()
			f.patch(f.rdss("default"), "held", `{"spec":{"autopilot":false}}`)
			f.delete(f.raps("default"), "abandoned")
			for _, db := range []string{"held", "abandoned"} {
				a := f.says("default", db, false, "CloudUnreachable")
				if m := armedCondition(a).Message; !strings.Contains(m, v1alpha1.AbandonAnnotation+"=true") || !strings.Contains(m, "503") || len(a.Finalizers) == 0 {
					t.Errorf("%s: %q, finalizers %v", db, m, a.Finalizers)
				}
			}
			tries := f.sim.Count("smn", "DeleteTopic")
			f.until("it is tried again", func() bool { return f.sim.Count("smn", "DeleteTopic") > tries+8 })

			f.patch(f.rdss("default"), "abandoned", `{"spec":{"autopilot":null}}`)
			f.patch(f.raps("default"), "abandoned", `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
			f.until("it is given up", func() bool { return f.autopilot("default", "abandoned") == nil })
			f.until("both objects say so", func() bool { return len(f.events("default", "abandoned", "Abandoned")) == 2 })
			if len(f.thingsOf(name(abandoned)).topics) != 1 {
				t.Error("the topic is gone all the same")
			}
			if a := f.autopilot("default", "held"); len(a.Finalizers) == 0 {
				t.Error("the other one was given up too")
			}
			mend()
			f.released("default", "held", "NotEnabled")
		})
		s.stop()
	})
}

// A person can mark an armed object as one of doctor's, and the service still looks after its alarms.
func TestAlarmsOfADatabaseThatIsMarkedAsDoctorsAreRemoved(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		s := f.start(flags{sweep: 2 * time.Minute})
		defer s.stop()
		const db = "autopilot-doctor-mine"
		f.database("default", db, plain())
		f.armedNow("default", db)
		f.patch(f.raps("default"), db, `{"metadata":{"annotations":{"`+v1alpha1.DoctorAnnotation+`":"true"}}}`)
		time.Sleep(10 * time.Minute)
		f.whole(t, f.armedNow("default", db))
		f.patch(f.rdss("default"), db, `{"spec":{"autopilot":false}}`)
		f.released("default", db, "NotEnabled")
	})
}

func TestModeOffRemovesAllAlarms(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		first := f.start(flags{sweep: 2 * time.Minute})
		in := f.database("default", "one", plain())
		one := f.armedNow("default", "one")
		before := f.whole(t, one)

		f.rds("default", "two", spec(map[string]any{"autopilot": true}), in.ID)
		if a := f.says("default", "two", false, "InstanceUnknown"); !strings.Contains(armedCondition(a).Message, "default/one names the same instance") {
			t.Errorf("%q", armedCondition(a).Message)
		}
		f.armedNow("default", "one")
		two := f.autopilot("default", "two")
		if n := f.thingsOf(name(two)).count(); n > 0 {
			t.Errorf("%d things in the cloud for an instance that is another's", n)
		}
		f.delete(f.rdss("default"), "two")
		f.gone(two)
		if err := same(before, f.whole(t, f.armedNow("default", "one"))); err != nil {
			t.Error(err)
		}

		for _, db := range []string{"late", "later"} {
			f.database("default", db, plain())
			f.armedNow("default", db)
		}
		// A stranger's things are not in the way of removing all.
		_, err := f.person().CreateTopic(t.Context(), "autopilot_is_mine", "")
		f.must(err)
		first.stop()
		f.delete(f.rdss("default"), "later") // while nobody is there
		off := f.start(flags{mode: v1alpha1.ModeOff})
		for _, db := range []string{"one", "late"} {
			f.released("default", db, "NotEnabled")
		}
		f.until("the one without its Rds is gone", func() bool { return f.autopilot("default", "later") == nil })
		if topics, subs, rules := f.sim.Topics(), f.sim.Subscriptions(), f.sim.Rules(); len(topics) != 1 || len(subs)+len(rules) > 0 {
			t.Errorf("left: %+v, %+v, %+v", topics, subs, rules)
		}
		f.rds("default", "new", spec(map[string]any{"autopilot": true}), f.instance(plain()))
		off.rest()
		off.stop()
		if a := f.autopilot("default", "new"); a != nil {
			t.Errorf("off makes %s", a.Name)
		}

		f.start(flags{}) // and back
		for _, db := range []string{"one", "late", "new"} {
			f.whole(t, f.armedNow("default", db))
		}
	})
}

func TestRdsRecreatedWhileNoProcessRuns(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		first := f.start(flags{})
		was := map[string]*v1alpha1.RdsAutopilot{}
		for _, db := range []string{"on", "silent", "false"} {
			f.database("default", db, plain())
			was[db] = f.armedNow("default", db)
		}
		first.rest()
		first.stop()
		words := map[string]map[string]any{"on": {"autopilot": true}, "silent": nil, "false": {"autopilot": false}}
		for db, word := range words {
			f.delete(f.rdss("default"), db)
			f.rds("default", db, spec(word), f.instance(plain()))
		}
		second := f.start(flags{})
		for _, a := range was {
			f.gone(a)
		}
		f.until("the one that says so is armed", func() bool {
			a := f.autopilot("default", "on")
			return a != nil && isArmed(a)
		})
		f.whole(t, f.autopilot("default", "on"))
		second.rest()
		second.stop()
		for _, db := range []string{"silent", "false"} {
			if a := f.autopilot("default", db); a != nil {
				t.Errorf("%s is made again: %+v", db, a.Status)
			}
			if _, err := f.rdss("default").Get(t.Context(), db, metav1.GetOptions{}); apierrors.IsNotFound(err) {
				t.Error(fmt.Sprint(db, ": the Rds is gone"))
			}
		}
	})
}
