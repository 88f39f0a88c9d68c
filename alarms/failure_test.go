// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestFullQuotaIsReportedOnceWithItsNumbersAndOtherRulesAreRepaired(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	memory := w.rule(v1alpha1.MetricMemory).ID
	for _, r := range w.sim.Rules() {
		if r.ID != memory {
			w.sim.RemoveRule(r.ID)
		}
	}
	w.must(w.cloud.EnableRule(t.Context(), memory, false))
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1 })
	restored, err := w.try(w.desired())
	const want = "quota exceeded: 1 of 1 alarm rules used: the storage rule cannot be created: "
	if !errors.Is(err, v1alpha1.ErrQuota) || !strings.HasPrefix(err.Error(), want) ||
		strings.Count(err.Error(), "cannot be created") != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %s", err, want)
	}
	if w.recorded.Refused != err.Error() || len(w.recorded.Rules) != 1 || !w.rule(v1alpha1.MetricMemory).Enabled ||
		!cmp.Equal(restored, []v1alpha1.Metric{v1alpha1.MetricMemory}) {
		t.Errorf("recorded %+v, restored %v; want the memory rule enabled", w.recorded, restored)
	}
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1000 })
	if restored := w.ensure(w.desired()); restored != "" {
		t.Errorf("restored %q", restored)
	}
	w.checkInOrder(w.desired())
}

// The removal of a superfluous rule makes room for another one.
func TestRulesAreRemovedBeforeOthersAreCreated(t *testing.T) {
	w := newWorld(t)
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1 })
	for _, i := range []int{2, 0} {
		desired := w.desired()
		desired.Rules = desired.Rules[i : i+1]
		w.ensure(desired)
		w.checkInOrder(desired)
	}
}

func TestRefusedRuleIsReportedUntilItIsCreated(t *testing.T) {
	w := newWorld(t)
	w.refuse("CreateAlarm")
	_, err := w.try(w.desired())
	if !errors.Is(err, v1alpha1.ErrRuleRefused) || errors.Is(err, v1alpha1.ErrQuota) ||
		strings.Count(err.Error(), "403 Not.0001 Not today") != 3 || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with three refusals", err)
	}
	refusal := w.recorded.Refused
	if refusal != err.Error() || len(w.recorded.Rules) != 0 {
		t.Errorf("recorded %+v", w.recorded)
	}
	w.refuse("ListAlarms") // no answer about rules takes nothing back
	if _, err := w.try(w.desired()); err == nil || errors.Is(err, v1alpha1.ErrRuleRefused) || w.recorded.Refused != refusal {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
	w.refuse()
	w.ensure(w.desired())
	w.checkInOrder(w.desired())
	w.sim.RemoveRule(w.rule(v1alpha1.MetricCPU).ID)
	w.refuse("CreateAlarm")
	if restored, _ := w.try(w.desired()); len(restored) > 0 || len(w.recorded.Rules) != 2 || w.recorded.Refused == "" {
		t.Errorf("a rule that is gone and refused: restored %v, recorded %+v", restored, w.recorded)
	}
}

func TestCloudEyeThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	try := func(when, text string, creates, rules int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		desired := w.desired()
		desired.Recorded = w.recorded
		w.sim.ResetRequests()
		observed, _, err := w.alarms.Ensure(ctx, desired, w.record)
		if err == nil || !strings.Contains(err.Error(), text) || errors.Is(err, v1alpha1.ErrRuleRefused) ||
			!errors.Is(err, otc.ErrUnavailable) || observed.Refused != "" || len(observed.Rules) != rules ||
			w.sim.Count("ces", "CreateAlarm") != creates {
			t.Errorf("%s: %v, %v, observed %+v", when, w.writes(), err, observed)
		}
	}
	w.fail(simcloud.Fault{Status: 503}, "CreateAlarm")
	try("nothing is created", "the storage rule cannot be created", 1, 0) // and the others are not tried
	w.refuse()
	w.ensure(w.desired())
	for _, fault := range []simcloud.Fault{{Status: 503}, {Hang: true}} {
		w.fail(fault, "ListAlarms")
		try("no list", "the alarm rules cannot be listed", 0, 3)
	}
	w.refuse()
	w.checkInOrder(w.desired())
}

func TestEnsureContinuesAfterOneRefusal(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	w.sim.RemoveRule(w.rule(v1alpha1.MetricMemory).ID)
	w.must(w.cloud.EnableRule(t.Context(), w.rule(v1alpha1.MetricStorage).ID, false))
	grown := w.desired()
	grown.Rules[0].ThresholdPercent = 60
	w.refuse("SwitchAlarm", "UpdateAlarm")
	restored, err := w.try(grown)
	const text = "the storage rule cannot be repaired: ces ModifyRule: 403 Not.0001 Not today"
	if err == nil || err.Error() != text || w.recorded.Refused != "" ||
		!cmp.Equal(restored, []v1alpha1.Metric{v1alpha1.MetricMemory}) {
		t.Errorf("restored %v, %v", restored, err)
	}
	if len(w.recorded.Rules) != 3 || w.recorded.Rules[0].ThresholdPercent != 75 {
		t.Errorf("recorded %+v, want the threshold that the rule has", w.recorded)
	}
	// A rule that cannot be removed stays recorded.
	without := w.desired()
	without.Rules = without.Rules[:2]
	w.refuse("DeleteAlarm")
	if _, err := w.try(without); err == nil || len(w.recorded.Rules) != 3 {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
	w.refuse()
	w.ensure(without)
	w.checkInOrder(without)
}

func TestObjectWhoseNameDoesNotFitIntoAMarkHasNoRules(t *testing.T) {
	w := newWorld(t)
	desired := w.desired()
	desired.Name = strings.Repeat("n", 157)
	if _, err := w.try(desired); !errors.Is(err, v1alpha1.ErrNameTooLong) || len(w.sim.Requests()) > 0 || w.recorded.Refused != "" {
		t.Errorf("%v, recorded %+v", err, w.recorded)
	}
	desired.Name = desired.Name[1:]
	w.ensure(desired)
	for _, r := range w.sim.Rules() {
		if mark, ok := alarms.ParseMark(r.Description); !ok || mark.Name != desired.Name || len(r.Name) > 100 {
			t.Errorf("rule %s %s", r.Name, r.Description)
		}
	}
}
