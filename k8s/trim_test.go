// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"testing"

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
