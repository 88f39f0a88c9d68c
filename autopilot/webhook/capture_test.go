// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// doctors makes the stored object one of doctor.
func (b *bench) doctors() {
	b.store.stored.Name = v1alpha1.DoctorName + "x"
	b.store.stored.Annotations = map[string]string{v1alpha1.DoctorAnnotation: "true"}
}

func (b *bench) captured() []v1alpha1.CapturedMessage { return b.store.stored.Status.Intake.Captured }

func TestMessageOfADatabaseIsNotCaptured(t *testing.T) {
	for name, of := range map[string]func(*v1alpha1.RdsAutopilot){
		"a database's":      func(*v1alpha1.RdsAutopilot) {},
		"only named so":     func(a *v1alpha1.RdsAutopilot) { a.Name = v1alpha1.DoctorName + "x" },
		"only annotated so": func(a *v1alpha1.RdsAutopilot) { a.Annotations = map[string]string{v1alpha1.DoctorAnnotation: "true"} },
		"annotated as not that": func(a *v1alpha1.RdsAutopilot) {
			a.Name, a.Annotations = v1alpha1.DoctorName+"x", map[string]string{v1alpha1.DoctorAnnotation: "false"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			of(b.store.stored)
			if w := b.post(signedBody(nil)); w.Code != http.StatusOK {
				t.Errorf("status %d: it was asked for again", w.Code)
			}
			if w := b.post(signedBody(map[string]string{"signature": strings.Repeat("AAAA", 86)})); w.Code != http.StatusForbidden || b.captured() != nil || b.store.writes != 1 {
				t.Errorf("status %d, %d writes, captured %v", w.Code, b.store.writes, b.captured())
			}
		})
	}
}

func TestMessagesOfDoctorAreCapturedWithTheirResults(t *testing.T) {
	b := newBench(t)
	b.doctors()
	if w := b.post(signedBody(map[string]string{"signature": strings.Repeat("AAAA", 86)})); w.Code != http.StatusForbidden {
		t.Errorf("status %d", w.Code)
	}
	if got := b.captured(); len(got) != 1 || got[0].Result != "forged" || strings.Contains(got[0].Body, "AAAA") || b.store.stored.Status.Intake.SigningCertURL != "" {
		t.Errorf("captured %+v, and trusts %q", got, b.store.stored.Status.Intake.SigningCertURL)
	}
	body := signedBody(nil)
	for i, want := range []struct {
		status int
		result result
		stored int
	}{{http.StatusServiceUnavailable, resultUnavailable, 0}, {http.StatusOK, resultStored, 1}, {http.StatusOK, resultDuplicate, 1}} {
		w := b.post(body)
		got := b.captured()
		if w.Code != want.status || len(got) != i+2 || got[i+1].Result != string(want.result) || len(b.store.stored.Status.Intake.Signals) != want.stored {
			t.Errorf("attempt %d: status %d, captured %+v", i+1, w.Code, got)
		}
	}
	for i := range 20 {
		b.post(signedBody(map[string]string{"message_id": fmt.Sprintf("%032x", i)}))
	}
	if got := len(b.captured()); got != maxCaptured {
		t.Errorf("%d are kept, want %d", got, maxCaptured)
	}
}
