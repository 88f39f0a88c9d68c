// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The used space is seen in the volume, however small that is against its cap of 500 GB.
func TestBarShowsVolumeInCapAndUsedSpaceInVolume(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		volumeGB int32
		used     string
		want     map[string]string // widths by class
	}{
		"to scale":            {400, "50", map[string]string{"cap": "100", "volume": "80.0", "used": "40.0"}},
		"at its cap":          {500, "100", map[string]string{"cap": "100", "volume": "100.0", "used": "100.0"}},
		"above a lowered cap": {900, "50", map[string]string{"cap": "100", "volume": "100.0", "used": "50.0"}},
		"small":               {40, "75", map[string]string{"cap": "100", "volume": "40.0", "used": "30.0"}},
		"not measured":        {40, "", map[string]string{"cap": "100", "volume": "40.0"}},
		"not known":           {0, "75", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &cache{}
			c.add("shop", "orders", usage(tc.used, now()), func(a *v1alpha1.RdsAutopilot) { a.Status.Instance.VolumeGB = tc.volumeGB })
			got := map[string]string{}
			for _, rect := range elements(get(t, handler(t, c), "/", http.StatusOK), "rect") {
				got[attribute(rect, "class")] = attribute(rect, "width")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
