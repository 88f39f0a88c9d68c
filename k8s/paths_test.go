// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"slices"
	"testing"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestPathsOfFormerURLsAreWithoutEscapes(t *testing.T) {
	a := &autopilotv1.RdsAutopilot{}
	a.Status.Alarms.Endpoints = []string{"https://a.example", "https://a.example/smn", "https://a.example/a%20b", "::"}
	if got := pathsOf(a); !slices.Equal(got, []string{"/", "/smn", "/a b"}) {
		t.Errorf("%q", got)
	}
}
