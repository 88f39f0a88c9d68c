// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Allowed holds the administrator's limits.
type Allowed struct {
	Apply v1alpha1.Apply // Cloud allows spec.apply: Cloud; any other value does not
	// Instances lists which instances the objects of a namespace may name, as NAMESPACE/ID with * for any. An empty
	// list allows all, but none with Apply: Cloud, because whoever may edit one namespace could then have any instance
	// of the project changed.
	Instances []string
	// OwnNamespace is that of the service, where doctor creates an RdsAutopilot for its rehearsal. With mode Recommend,
	// which changes nothing, an RdsAutopilot there may name any instance. Empty means that no namespace is excepted.
	OwnNamespace string
}

func (a Allowed) isRehearsal(t *Target, spec v1alpha1.Spec) bool {
	return a.OwnNamespace != "" && t.Namespace == a.OwnNamespace && spec.Mode == v1alpha1.ModeRecommend
}

// LacksInstances reports whether apply: Cloud is allowed without a list of instances.
func (a Allowed) LacksInstances() bool {
	return a.Apply == v1alpha1.ApplyCloud && len(a.Instances) == 0
}

// Refuses returns why an autopilot must not manage its target. It returns an empty text if it may.
func (a Allowed) Refuses(spec v1alpha1.Spec, t *Target) string {
	switch {
	case a.isRehearsal(t, spec):
		return ""
	case spec.Apply == v1alpha1.ApplyCloud && a.Apply != v1alpha1.ApplyCloud:
		return "spec.apply is Cloud, which this installation does not allow: --allow-apply is Operator"
	case t.InstanceID != "" && !a.lists(t):
		return fmt.Sprintf("--allowed-instances does not allow namespace %s to name instance %s", t.Namespace, t.InstanceID)
	}
	return ""
}

// DescribeClaim returns the sentence for an object whose instance another one manages.
func DescribeClaim(c v1alpha1.Claim) string {
	owner := c.By
	if c.Cluster != "" {
		owner += " of cluster " + c.Cluster
	}
	if c.Rule == "" {
		return owner + " manages this instance: it names it too, and Cloud Eye creates no alarm rule. Turn one of the two off"
	}
	return fmt.Sprintf("%s manages this instance: its alarm rule %s watches it. Turn one of the two off, or delete the rules if that cluster is gone",
		owner, c.Rule)
}

// lists reports whether the objects of the target's namespace may have its instance changed.
func (a Allowed) lists(t *Target) bool {
	if len(a.Instances) == 0 {
		return a.Apply != v1alpha1.ApplyCloud
	}
	return slices.ContainsFunc(a.Instances, func(entry string) bool {
		ns, instance, _ := strings.Cut(entry, "/")
		return (ns == "*" || ns == t.Namespace) && (instance == "*" || instance == t.InstanceID)
	})
}

// ValidAllowedInstance reports whether an entry of --allowed-instances has the form NAMESPACE/ID.
func ValidAllowedInstance(entry string) bool {
	ns, id, ok := strings.Cut(entry, "/")
	return ok && ns != "" && id != "" && !strings.Contains(id, "/")
}

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
