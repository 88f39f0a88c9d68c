// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestStatusPatchHoldsOnlyWhatDiffers(t *testing.T) {
	at := metav1.NewMicroTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	intent := &autopilotv1.Intent{
		Kind: autopilotv1.KindVolume, Metrics: []autopilotv1.Metric{autopilotv1.MetricStorage},
		From: "40", To: "50", EvidenceTime: at, ValuePercent: "93.1", DecisionTime: at,
	}
	full := autopilotv1.Status{
		ObservedGeneration: 7,
		Instance:           &autopilotv1.Instance{ID: "a", Status: "ACTIVE", VolumeGB: 40},
		Alarms:             autopilotv1.Alarms{Refused: "quota"},
		Pending:            intent,
		Changes:            []autopilotv1.Change{{Kind: autopilotv1.KindVolume, To: "40", CompletionTime: at}},
	}
	for _, c := range []struct {
		name   string
		change func(*autopilotv1.Status)
		want   string // of status; empty means no patch
	}{
		{"nothing differs", func(*autopilotv1.Status) {}, ``},
		{"a number", func(s *autopilotv1.Status) { s.ObservedGeneration++ }, `{"observedGeneration":8}`},
		{"a field is removed", func(s *autopilotv1.Status) { s.Pending = nil }, `{"pending":null}`},
		{"a member of an object is removed", func(s *autopilotv1.Status) { s.Alarms = autopilotv1.Alarms{} },
			`{"alarms":null}`},
		{"a list is sent whole", func(s *autopilotv1.Status) {
			s.Changes = append([]autopilotv1.Change{{Kind: autopilotv1.KindFlavor, To: "x", CompletionTime: at}}, s.Changes...)
		}, `{"changes":[
			{"kind":"Flavor","by":"","from":"","to":"x","completionTime":"2026-11-20T10:00:00.000000Z","outcome":""},
			{"kind":"Volume","by":"","from":"","to":"40","completionTime":"2026-11-20T10:00:00.000000Z","outcome":""}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := *full.DeepCopy()
			c.change(&changed)
			patch, err := statusPatch("7", full, changed)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if patch != nil {
					t.Fatalf("sends %s", patch)
				}
				return
			}
			want := `{"metadata":{"resourceVersion":"7"},"status":` + c.want + `}`
			if diff := cmp.Diff(decoded(t, []byte(want)), decoded(t, patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, encoded []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(encoded, &v); err != nil {
		t.Fatalf("%s: %v", encoded, err)
	}
	return v
}
