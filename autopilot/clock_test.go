// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// fillTimes sets every time of a status to at. Lists get one element.
func fillTimes(v reflect.Value, at time.Time) {
	switch x := v.Addr().Interface().(type) {
	case *metav1.Time:
		x.Time = at
		return
	case *metav1.MicroTime:
		x.Time = at
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTimes(v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTimes(v.Index(0), at)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillTimes(v.Field(i), at)
			}
		}
	}
}

// lateTimes returns the paths of the times of a status that are after latest.
func lateTimes(v reflect.Value, path string, latest time.Time) (late []string) {
	switch x := v.Interface().(type) {
	case metav1.Time:
		if x.After(latest) {
			return []string{path}
		}
		return nil
	case metav1.MicroTime:
		if x.After(latest) {
			return []string{path}
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		return lateTimes(v.Elem(), path, latest)
	case reflect.Slice:
		if v.Len() > 0 {
			return lateTimes(v.Index(0), path, latest)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				late = append(late, lateTimes(v.Field(i), strings.TrimPrefix(path+"."+f.Name, "."), latest)...)
			}
		}
	}
	return late
}

// A new time in the status needs a decision: either ClampTimes clamps it, or it belongs to this list, because it is not
// of the leader's clock or no decision depends on it.
func TestClampTimesClampsEveryTimeOfOurClock(t *testing.T) {
	notOurs := []string{
		"Conditions.LastTransitionTime", "Used.Time", "CapForecast.ReadOnlyTime", "Alarms.SubscribedTime", "Alarms.Rules.StateTime", "Intake.", "Pending.EvidenceTime",
		"Overtaken.EvidenceTime", "Changes.EvidenceTime", "FormerVolumes.Until", "Warned.Time", "Decisions.",
	}
	var s v1alpha1.Status
	fillTimes(reflect.ValueOf(&s).Elem(), noon().Add(5*time.Hour))
	shared := s.Changes
	ClampTimes(&s, noon())
	for _, path := range lateTimes(reflect.ValueOf(s), "", noon().Add(longestWait)) {
		if !slices.ContainsFunc(notOurs, func(p string) bool { return strings.HasPrefix(path, p) }) {
			t.Errorf("%s is still hours ahead", path)
		}
	}
	if !shared[0].CompletionTime.After(noon()) {
		t.Error("changed a list that others share")
	}
}

// A clock that was hours ahead when it wrote the status delays storage by minutes at most.
func TestStorageDoesNotWaitForAClockThatWasAhead(t *testing.T) {
	ahead := ago(-5 * time.Hour)
	for name, change := range map[string]func(*Case){
		"a growth, and its rule is in ok": func(c *Case) {
			c.Alarms[0].State = v1alpha1.StateOK
			c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "90", To: "100", CompletionTime: ahead, Outcome: v1alpha1.OutcomeCompleted}}
		},
		"a size that was reverted": func(c *Case) {
			c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "110", CompletionTime: ahead, Outcome: v1alpha1.OutcomeLost, Count: 1}}
		},
		"a refused patch": func(c *Case) {
			c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", -5*time.Hour)
			c.Status.Pending.Refusal = &v1alpha1.Refusal{Count: 1, Time: ahead}
		},
		"a pending flavor": pendingFlavor(-5 * time.Hour),
		"a used space over its threshold, and no alarm": func(c *Case) {
			since := metav1.NewTime(ahead.Time)
			c.Alarms[0].State, c.Status.OverThresholdSince = v1alpha1.StateOK, &since
		},
	} {
		c := quiet().with(storageAt(93))
		change(&c)
		grows := func() bool {
			next := c
			next.Alarms = slices.Clone(c.Alarms)
			next.Status = c.Status.Copy()
			ClampTimes(&next.Status, next.Now)
			c.Status = next.Status // as each round stores it
			a := &next.Alarms[0]
			a.Evidence.Time, a.GrowthTime = next.Now, RecentGrowth(next.Status.Changes, next.Now)
			if since := next.OverThresholdSince(a.Evidence); since != nil {
				a.AlarmOverdueSince = since.Time
			}
			v := Decide(next)
			return v.Intent != nil && v.Intent.Kind == v1alpha1.KindVolume
		}
		waited := time.Duration(0)
		for ; !grows() && waited < time.Hour; waited += time.Minute {
			c.Now = c.Now.Add(time.Minute)
		}
		if waited > 15*time.Minute {
			t.Errorf("%s: storage waits for %s", name, waited)
		}
	}
}
