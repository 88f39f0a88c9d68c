// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Target is a database that an autopilot of the same namespace and name looks after, as its Rds describes it or, where there is
// none, the autopilot itself.
type Target struct {
	Namespace, Name string
	// NoRds: the autopilot names the instance, and the uid and version are its own. Nothing is wanted of an operator.
	NoRds           bool
	UID             types.UID
	ResourceVersion string
	// InstanceID in the cloud; empty until the operator has entered it.
	InstanceID string
	// Wanted is what the operator is asked for.
	Wanted Wanted
	// Switch is what spec.autopilot says; empty where the field is absent, which says nothing.
	Switch v1alpha1.Switch
	// Deleting: a person has deleted it, and its finalizers hold it.
	Deleting bool
	// OperatorAutopilot: spec.endpoint is set, so the operator's own, unauthenticated autopilot is on as well.
	OperatorAutopilot bool
}

// GetUID returns the UID, as Kubernetes objects do.
func (t *Target) GetUID() types.UID { return t.UID }

// GetResourceVersion returns the version that was read, as Kubernetes objects do.
func (t *Target) GetResourceVersion() string { return t.ResourceVersion }

// Event is what people are to know about a database.
type Event struct {
	Warning bool
	Change  bool // it is about a change: another one with the same reason is another event
	Reason  string
	Action  string
	Note    string
}
