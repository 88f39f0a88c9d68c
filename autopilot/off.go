// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Off says why nothing is decided for a database, and nothing of it should exist in the cloud. The zero value means
// that its autopilot is on.
type Off struct {
	Reason  Reason // ReasonNotEnabled, ReasonNotAllowed or ReasonInstanceUnknown
	Message string
}

// OffFor decides whether autopilot is on for a database. t is nil if there is neither an Rds nor spec.instanceID. If t
// does not set spec.autopilot, lastSwitch counts, which is its last explicit value. most is --mode.
func OffFor(t *Target, a *v1alpha1.RdsAutopilot, lastSwitch v1alpha1.Switch, most v1alpha1.Mode, allowed Allowed) Off {
	if t != nil {
		lastSwitch = cmp.Or(t.Switch, lastSwitch)
	}
	switch {
	case !a.DeletionTimestamp.IsZero():
		return Off{ReasonNotEnabled, "The RdsAutopilot is being deleted"}
	case t == nil:
		return Off{ReasonInstanceUnknown, "There is no Rds with this namespace and name"}
	case t.NoRds: // the existence of the RdsAutopilot is the switch
	case a.Spec.InstanceID != "" && t.InstanceID != "" && a.Spec.InstanceID != t.InstanceID:
		return Off{ReasonInstanceUnknown,
			"spec.instanceID differs from status.id of the Rds with this namespace and name. Remove the wrong one"}
	case t.Deleting:
		return Off{ReasonNotEnabled, "The Rds is being deleted"}
	case IsSuccessor(t, a):
		return Off{ReasonInstanceUnknown, "The Rds of this RdsAutopilot was deleted, and another Rds has its name"}
	case lastSwitch == v1alpha1.SwitchOff:
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

// Owner returns the Rds that the controller created this RdsAutopilot for. It returns nil if a person created it.
func Owner(a *v1alpha1.RdsAutopilot) *metav1.OwnerReference {
	i := slices.IndexFunc(a.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == otcv1.Kind })
	if i < 0 {
		return nil
	}
	return &a.OwnerReferences[i]
}

// IsSuccessor reports whether the Rds has the same name as the one that this RdsAutopilot was created for, but another
// uid.
func IsSuccessor(t *Target, a *v1alpha1.RdsAutopilot) bool {
	o := Owner(a)
	return o != nil && t != nil && !t.NoRds && o.UID != t.UID
}
