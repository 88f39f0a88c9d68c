// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestClampInt32LimitsANumberOutOfRange(t *testing.T) {
	for n, want := range map[int]int32{-1: 0, 0: 0, 40: 40, math.MaxInt32: math.MaxInt32, 1<<32 + 40: math.MaxInt32} {
		if got := ClampInt32(n); got != want {
			t.Errorf("%d came out as %d, want %d", n, got, want)
		}
	}
}

func TestPrimarySinceChangesWithThePrimaryAlone(t *testing.T) {
	before, now := metav1.NewTime(noon().Add(-time.Hour)), metav1.NewTime(noon())
	last := &v1alpha1.Instance{ID: "i", Primary: "n1", PrimarySince: &before}
	for name, tc := range map[string]struct {
		inst Instance
		last *v1alpha1.Instance
		want *metav1.Time
	}{
		"the same primary":        {Instance{ID: "i", Primary: "n1", NodeIDs: []string{"n1", "n2"}}, last, &before},
		"a failover":              {Instance{ID: "i", Primary: "n2", NodeIDs: []string{"n1", "n2"}}, last, &now},
		"another instance":        {Instance{ID: "j", Primary: "n1", NodeIDs: []string{"n1", "n2"}}, last, &now},
		"seen for the first time": {Instance{ID: "i", Primary: "n1", NodeIDs: []string{"n1", "n2"}}, nil, &now},
		"one node":                {Instance{ID: "i", Primary: "n1", NodeIDs: []string{"n1"}}, nil, nil},
	} {
		if got := tc.inst.observed(tc.last, noon()).PrimarySince; !got.Equal(tc.want) {
			t.Errorf("%s: since %v, want %v", name, got, tc.want)
		}
	}
}
