// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// verdictOf returns the verdict of a walk that reads the facts of the case as it needs them.
func verdictOf(c autopilot.Case) autopilot.Verdict {
	_, v := walked(c)
	return v
}

// walked returns the case with the facts that a walk has read, and the verdict of the walk.
func walked(c autopilot.Case) (autopilot.Case, autopilot.Verdict) {
	c, read := cases.Unread(c)
	v := decide.Walk(context.Background(), &c, read)
	return c, v
}

// decided returns the case with the facts that a walk has read and the status to store before the change is requested,
// and the verdict of the walk.
func decided(c autopilot.Case) (autopilot.Case, autopilot.Verdict) {
	c, v := walked(c)
	c.Status = Outcome(c, v).Status
	return c, v
}

// pendingOf returns our pending change of a status, or nil.
func pendingOf(s v1alpha1.Status) *v1alpha1.Change {
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if ch, ok := change.Pending(s.Changes, kind); ok {
			return &ch
		}
	}
	return nil
}
