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

// ClampTimes must clamp a new time of the status, or the time belongs to this list: it is not of the leader's clock, or no
// decision depends on it.
func TestClampTimesClampsEveryTimeOfOurClock(t *testing.T) {
	notOurs := []string{
		"Conditions.LastTransitionTime", "Used.Time", "Alarms.SubscribedTime", "Alarms.Rules.StateTime", "Intake.", "Pending.EvidenceTime",
		"Overtaken.EvidenceTime", "Changes.EvidenceTime", "FormerVolumes.Until", "Warned.Time", "Decisions.",
	}
	var s v1alpha1.Status
	fillTimes(reflect.ValueOf(&s).Elem(), noon().Add(5*time.Hour))
	shared := s.Changes
	ClampTimes(&s, noon())
	for _, path := range lateTimes(reflect.ValueOf(s), "", noon().Add(15*time.Minute)) {
		if !slices.ContainsFunc(notOurs, func(p string) bool { return strings.HasPrefix(path, p) }) {
			t.Errorf("%s is still hours ahead", path)
		}
	}
	if !shared[0].CompletionTime.After(noon()) {
		t.Error("modified a list that it shares with the cache")
	}
}
