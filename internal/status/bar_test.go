// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestBarShowsUsedPartOfVolumeAndThreshold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		volumeGB int32
		used     string
		want     map[string]string // position by class
	}{
		"small":        {40, "30", map[string]string{"volume": "100", "used": "30.0", "threshold": "75"}},
		"large":        {400, "50", map[string]string{"volume": "100", "used": "50.0", "threshold": "90"}},
		"full":         {100, "100", map[string]string{"volume": "100", "used": "100.0", "threshold": "85"}},
		"of a sweep":   {400, "sweep", map[string]string{"volume": "100", "used": "25.0", "threshold": "90"}},
		"not measured": {50, "", map[string]string{"volume": "100", "threshold": "77"}},
		"not known":    {0, "75", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &cache{}
			c.add("shop", "orders", withUsage(tc.used, now()), func(a *v1alpha1.RdsAutopilot) {
				a.Status.Instance.VolumeGB = tc.volumeGB
				if tc.used == "sweep" {
					a.Status.Used = &v1alpha1.UsedSpace{GB: "100.0", Time: metav1.NewTime(now())}
				}
			})
			got := map[string]string{}
			page := get(t, pageOf(t, c), "/", http.StatusOK)
			for _, rect := range elements(page, "rect") {
				got[attribute(rect, "class")] = attribute(rect, "width")
			}
			for _, line := range elements(page, "line") {
				got[attribute(line, "class")] = attribute(line, "x1")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
