// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
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
	// OwnNamespace is the service's. An object of it in Recommend may name any instance, because it changes nothing:
	// doctor rehearses with one. If it is empty, there is no such exception.
	OwnNamespace string
}

// isRehearsal reports whether a target is of the service's own namespace and in Recommend.
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

// FirstClaim returns the target that manages the instance, of those that name it: the one that was armed first. Of two
// that are not armed it is the older one. A target whose autopilot is off or not allowed does not count, because
// otherwise anyone could stop an autopilot by naming its instance. A rehearsal does not count either: it changes nothing. FirstClaim returns nil if none is left.
// most is --mode.
func (a Allowed) FirstClaim(targets []*Target, most v1alpha1.Mode) (first *Target) {
	for _, t := range targets {
		if a.isOn(t, most) && (first == nil || t.compareClaim(first) < 0) {
			first = t
		}
	}
	return first
}

// isOn reports whether the autopilot of a target is on, or will be as soon as its RdsAutopilot is created.
func (a Allowed) isOn(t *Target, most v1alpha1.Mode) bool {
	if t.Autopilot == nil {
		return t.Switch == v1alpha1.SwitchOn && !t.Deleting && a.lists(t)
	}
	return OffFor(t, t.Autopilot, t.Autopilot.Status.Switch, most, a) == Off{} &&
		(!t.NoRds || a.Apply == v1alpha1.ApplyCloud) && !a.isRehearsal(t, t.Autopilot.Spec)
}

// isArmed reports whether rules of its instance are recorded. A rule of a former instance has no dimension.
func (t *Target) isArmed() bool {
	return t.Autopilot != nil && t.Autopilot.Status.Instance != nil && t.Autopilot.Status.Instance.ID == t.InstanceID &&
		slices.ContainsFunc(t.Autopilot.Status.Alarms.Rules,
			func(r v1alpha1.Rule) bool { return r.AlarmID != "" && r.Dimension != "" })
}

// compareClaim returns a negative number if the claim of t precedes that of other, and a positive one if it follows.
func (t *Target) compareClaim(other *Target) int {
	if armed := t.isArmed(); armed != other.isArmed() {
		if armed {
			return -1
		}
		return 1
	}
	return cmp.Or(t.Created.Compare(other.Created), strings.Compare(t.Namespace, other.Namespace),
		strings.Compare(t.Name, other.Name))
}

// DescribeClaim returns the sentence for an object whose instance another one manages.
func DescribeClaim(by string) string {
	return by + " names the same instance and was first, so it alone manages the instance. Remove the id from one of the two objects"
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
