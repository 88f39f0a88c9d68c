// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

func TestTrimKeepsWhatIsNamed(t *testing.T) {
	rds := &otcv1.Rds{ObjectMeta: metav1.ObjectMeta{
		Name: "one", Namespace: "db", UID: "u", ResourceVersion: "7", Generation: 3,
		Labels: map[string]string{"team": "a"},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"password":"secret"}}`,
			"autopilot.otc.mcsps.de.evil/copy":                 "secret",
			"autopilot.otc.mcsps.de/note":                      "kept",
		},
		Finalizers:    []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "operator"}},
	}}
	for range 2 { // a second time changes nothing
		if _, err := transform(rds); err != nil {
			t.Fatal(err)
		}
		want := metav1.ObjectMeta{
			Name: "one", Namespace: "db", UID: "u", ResourceVersion: "7", Generation: 3, Finalizers: []string{"f"},
			Annotations: map[string]string{"autopilot.otc.mcsps.de/note": "kept"},
		}
		if diff := cmp.Diff(want, rds.ObjectMeta); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
	}
	if _, err := transform(&autopilotv1.RdsAutopilotList{}); err == nil {
		t.Error("took what it does not know")
	}
}

func TestALongHistoryTakesNoMoreMemoryThanItNeeds(t *testing.T) {
	var decisions, changes []string
	for range 20 {
		decisions = append(decisions, `{"metric":"cpu","reason":"Cooldown","message":"wait"}`)
		changes = append(changes, `{"metrics":["cpu"],"to":"rds.mysql.n1.large.4"}`)
	}
	a := &autopilotv1.RdsAutopilot{}
	err := json.Unmarshal(fmt.Appendf(nil, `{"status":{"decisions":[%s],"changes":[%s]}}`, strings.Join(decisions, ","), strings.Join(changes, ",")), a)
	if err != nil {
		t.Fatal(err)
	}
	before := a.DeepCopy()
	if _, err := transform(a); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, a); diff != "" {
		t.Errorf("the object (-want +got):\n%s", diff)
	}
	d, c := a.Status.Decisions, a.Status.Changes
	if cap(d) > 24 || cap(c) > 24 {
		t.Errorf("room for %d decisions and %d changes, want 20", cap(d), cap(c))
	}
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	if !same(d[0].Reason, d[19].Reason) || !same(d[0].Message, d[19].Message) || !same(string(d[0].Metric), string(c[19].Metrics[0])) || !same(c[0].To, c[19].To) {
		t.Error("equal texts are held twice")
	}
}

func TestNoteIsCapped(t *testing.T) {
	for _, note := range []string{strings.Repeat("a", 3000), strings.Repeat("ü", 600), "a" + strings.Repeat("€", 400)} {
		got := truncated(note, maxNote)
		if len(got) > maxNote || len(got) < maxNote-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got := truncated("short", maxNote); got != "short" {
		t.Errorf("got %q", got)
	}
}
