// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestOnlyTheLeadersOwnStatusStartsNoRound(t *testing.T) {
	deleted := metav1.Now()
	for _, c := range []struct {
		name   string
		change func(*v1alpha1.RdsAutopilot)
		want   bool
	}{
		{"a decision was recorded", func(a *v1alpha1.RdsAutopilot) {
			a.Status.Decisions = []v1alpha1.DecisionRecord{{Reason: "AlarmCleared"}}
		}, true},
		{"a signal arrived", func(a *v1alpha1.RdsAutopilot) {
			a.Status.Intake.Signals = []v1alpha1.Signal{{MessageID: "1"}}
		}, false},
		{"the policy changed", func(a *v1alpha1.RdsAutopilot) { a.Generation++; a.Spec.Mode = v1alpha1.ModeOff }, false},
		{"it is being deleted", func(a *v1alpha1.RdsAutopilot) { a.DeletionTimestamp = &deleted }, false},
		{"the finalizer was taken away", func(a *v1alpha1.RdsAutopilot) { a.Finalizers = nil }, false},
		{"another object has the name", func(a *v1alpha1.RdsAutopilot) { a.UID = "2" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{
				UID: "1", ResourceVersion: "1", Finalizers: []string{v1alpha1.Finalizer},
			}}
			now := old.DeepCopy()
			now.ResourceVersion = "2"
			c.change(now)
			if got := ownWriteOnly(old, now); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if ownWriteOnly(nil, &v1alpha1.RdsAutopilot{}) {
		t.Error("a new one starts a round")
	}
}
