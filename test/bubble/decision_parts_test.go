// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func (f *fleet) volume(namespace, name string) int64 {
	o, err := f.rdss(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	f.must(err)
	return o.Object["spec"].(map[string]any)["volumesize"].(int64)
}

func (f *fleet) decided(namespace, name, reason string) bool {
	return slices.ContainsFunc(f.autopilot(namespace, name).Status.Decisions, func(d v1alpha1.DecisionRecord) bool { return d.Reason == reason })
}

func (f *fleet) completed(namespace, name, to string) bool {
	return slices.ContainsFunc(f.autopilot(namespace, name).Status.Changes, func(c v1alpha1.Change) bool {
		return c.To == to && c.Outcome == v1alpha1.OutcomeCompleted && c.By == v1alpha1.ByAutopilot
	})
}

func (f *fleet) changes(namespace, name string, by v1alpha1.Author) int {
	n := 0
	for _, c := range f.autopilot(namespace, name).Status.Changes {
		if c.By == by {
			n++
		}
	}
	return n
}
