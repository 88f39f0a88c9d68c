// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"

	"github.com/mcsps/rds-autopilot/autopilot"
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
	v := Walk(context.Background(), &c, read)
	return c, v
}
