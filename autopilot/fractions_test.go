// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// A manual prints 0 to 1 for some percentages: then no threshold is reached, and CPU and memory have no other source.
func TestPercentagesThatAreFractions(t *testing.T) {
	for _, tc := range []struct {
		name           string
		usedGB, listed float64
		warned         bool
	}{
		{"fractions", 42, 0.42, true},
		{"a full volume", 100, 1, true},
		{"percent", 42, 42, false},
		{"percent of an empty volume", 1, 0.9, false},
		{"not listed", 42, 0, false},
		{"no used space", 0, 0.42, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quiet()
			a := storageAt(tc.usedGB)
			a.State, a.Evidence.Percent = v1alpha1.StateOK, tc.listed
			status := c.Status
			look := func(a Alarm) (said string) {
				for _, w := range UpdateWarnings(c.with(a), &status) {
					said += string(w.Reason) + ": " + w.Message
				}
				return said
			}
			if said := look(a); strings.Contains(said, "NotPercent: Cloud Eye says") != tc.warned {
				t.Errorf("warned %q", said)
			}
			unread := a
			unread.Evidence = Evidence{}
			if said := look(unread) + look(a); strings.Contains(said, "NotPercent") {
				t.Errorf("warned again, after a round that did not read: %q", said)
			}
			mended := a
			mended.Evidence.Percent = 42
			if said := look(mended) + look(a); strings.Contains(said, "NotPercent") != tc.warned {
				t.Errorf("it was percent meanwhile, and warned %q", said)
			}
		})
	}
}
