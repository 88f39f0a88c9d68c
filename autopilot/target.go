// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Target is a database that the autopilot of the same namespace and name manages. Its fields come from the Rds or,
// without an Rds, from the autopilot itself.
type Target struct {
	Namespace, Name string
	// NoRds means that the autopilot names the instance. UID and version are then those of the autopilot.
	NoRds           bool
	UID             types.UID
	ResourceVersion string
	// InstanceID is the id in the cloud. It is empty until the operator has entered it.
	InstanceID string
	// Wanted is the size and flavor that the spec requests.
	Wanted Wanted
	// Switch is the value of spec.autopilot. It is empty if the field is absent, which changes nothing.
	Switch v1alpha1.SwitchValue
	// Deleting means that the object is deleted and that its finalizers still keep it.
	Deleting bool
	// OperatorAutopilot means that spec.endpoint turns on the operator's own, unauthenticated autopilot as well.
	OperatorAutopilot bool
}

// Explicit returns the last explicit value of spec.autopilot of this Rds: that of the Rds now, or a newer one that a
// watch has shown, or the stored one. Each must be of this Rds. It returns an empty value if there was none.
func (t *Target) Explicit(seen, stored v1alpha1.Switch) v1alpha1.SwitchValue {
	switch {
	case t.Switch != "":
		return t.Switch
	case seen.UID == t.UID && seen.Value != "":
		return seen.Value
	case stored.UID == t.UID:
		return stored.Value
	}
	return ""
}

// Event is a Kubernetes event about a database.
type Event struct {
	Warning bool
	Change  bool // it reports a change, and each change gets an event of its own
	Reason  string
	Action  string
	Note    string
}

// SignalOf returns the stored signal of a metric, or nil.
func SignalOf(in v1alpha1.Intake, m v1alpha1.Metric) *v1alpha1.Signal {
	if i := slices.IndexFunc(in.Signals, func(s v1alpha1.Signal) bool { return s.Metric == m }); i >= 0 {
		return &in.Signals[i]
	}
	return nil
}
