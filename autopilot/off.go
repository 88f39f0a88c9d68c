// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Off says why nothing is decided for a database, and nothing of it should exist in the cloud. The zero value means
// that its autopilot is on.
type Off struct {
	Reason  Reason // ReasonNotEnabled, ReasonNotAllowed, ReasonPolicyInvalid or ReasonInstanceUnknown
	Message string
}

// OffFor decides whether autopilot is on for a database. t is nil if there is neither an Rds nor spec.instanceID.
// explicit is the last explicit value of spec.autopilot of this Rds; empty if there was none. most is --mode.
func OffFor(t *Target, a *v1alpha1.RdsAutopilot, explicit v1alpha1.SwitchValue, most v1alpha1.Mode, allowed Allowed) Off {
	switch {
	case !a.DeletionTimestamp.IsZero():
		return Off{ReasonNotEnabled, "The RdsAutopilot is being deleted"}
	case t == nil:
		return Off{ReasonInstanceUnknown, "There is no Rds with this namespace and name. Delete this RdsAutopilot, or make the Rds again"}
	case t.NoRds: // the existence of the RdsAutopilot is the switch
	case a.Spec.Apply == v1alpha1.ApplyCloud:
		return Off{ReasonPolicyInvalid, "An Rds of this name exists, and its operator applies its changes. Remove spec.apply and " +
			"spec.instanceID, or give this RdsAutopilot another name to have the cloud changed without the operator"}
	case t.Deleting:
		return Off{ReasonNotEnabled, "The Rds is being deleted"}
	case explicit == v1alpha1.SwitchOff:
		return Off{ReasonNotEnabled, "spec.autopilot of the Rds is false. true turns it on again"}
	}
	if NarrowerMode(a.Spec.Mode, most) == v1alpha1.ModeOff {
		return Off{ReasonNotEnabled, "The mode is Off"}
	}
	if why := allowed.Refuses(a.Spec, t); why != "" {
		return Off{ReasonNotAllowed, why}
	}
	return Off{}
}
