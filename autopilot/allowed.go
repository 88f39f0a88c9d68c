// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Allowed is the administrator's word on spec.apply: Cloud.
type Allowed struct {
	Apply v1alpha1.Apply // Cloud, or anything else for no
	// Instances are those that a namespace may have changed in the cloud, as NAMESPACE/ID with * for any; none means all.
	Instances []string
}

// IsUnbounded reports whether a namespace may have any instance changed in the cloud.
func (a Allowed) IsUnbounded() bool { return a.Apply == v1alpha1.ApplyCloud && len(a.Instances) == 0 }

// Refuses says why an autopilot may not ask the cloud for its target; empty where it may, or does not want to.
func (a Allowed) Refuses(spec v1alpha1.Spec, t *Target) string {
	switch {
	case spec.Apply != v1alpha1.ApplyCloud:
		return ""
	case a.Apply != v1alpha1.ApplyCloud:
		return "spec.apply is Cloud, which this installation does not allow: --allow-apply is Operator"
	case t.InstanceID != "" && !a.instance(t.Namespace, t.InstanceID):
		return fmt.Sprintf("--allowed-instances does not let namespace %s have instance %s changed", t.Namespace, t.InstanceID)
	}
	return ""
}

// Shared reports whether of these, which name the same instance, more than one may have it. One that may not does not count:
// naming an instance must not hold up its owner's.
func (a Allowed) Shared(targets []*Target) bool {
	n := 0
	for _, t := range targets {
		if !t.NoRds || a.Refuses(v1alpha1.Spec{Apply: v1alpha1.ApplyCloud}, t) == "" {
			n++
		}
	}
	return n > 1
}

func (a Allowed) instance(namespace, id string) bool {
	for _, allowed := range a.Instances {
		ns, instance, _ := strings.Cut(allowed, "/")
		if (ns == "*" || ns == namespace) && (instance == "*" || instance == id) {
			return true
		}
	}
	return len(a.Instances) == 0
}

// ValidAllowedInstance reports whether one entry of --allowed-instances can be read.
func ValidAllowedInstance(entry string) bool {
	ns, id, ok := strings.Cut(entry, "/")
	return ok && ns != "" && id != "" && !strings.Contains(id, "/")
}
