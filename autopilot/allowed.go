// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Allowed holds the administrator's limits for spec.apply: Cloud.
type Allowed struct {
	Apply v1alpha1.Apply // Cloud allows it; any other value does not
	// Instances lists which instances a namespace may change in the cloud, as NAMESPACE/ID with * for any. An empty
	// list allows all.
	Instances []string
}

// IsUnbounded reports whether every namespace may change every instance in the cloud.
func (a Allowed) IsUnbounded() bool { return a.Apply == v1alpha1.ApplyCloud && len(a.Instances) == 0 }

// Refuses returns why an autopilot must not request changes of its target from the cloud. It returns an empty text if
// it may, or if its policy does not ask for it.
func (a Allowed) Refuses(spec v1alpha1.Spec, t *Target) string {
	switch {
	case spec.Apply != v1alpha1.ApplyCloud:
		return ""
	case a.Apply != v1alpha1.ApplyCloud:
		return "spec.apply is Cloud, which this installation does not allow: --allow-apply is Operator"
	case t.InstanceID != "" && !a.instance(t.Namespace, t.InstanceID):
		return fmt.Sprintf("--allowed-instances does not allow namespace %s to change instance %s", t.Namespace, t.InstanceID)
	}
	return ""
}

// ClaimedTwice reports whether more than one of these targets, which name the same instance, may manage it. A target
// that is not allowed does not count, because otherwise anyone could stop an autopilot by naming its instance.
func (a Allowed) ClaimedTwice(targets []*Target) bool {
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

// ValidAllowedInstance reports whether an entry of --allowed-instances has the form NAMESPACE/ID.
func ValidAllowedInstance(entry string) bool {
	ns, id, ok := strings.Cut(entry, "/")
	return ok && ns != "" && id != "" && !strings.Contains(id, "/")
}
