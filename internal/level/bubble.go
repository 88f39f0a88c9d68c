// SPDX-License-Identifier: Apache-2.0

package level

import (
	"testing"
	"testing/synctest"
)

// InBubble runs a test on a clock of its own, beside the others. Higher levels skip it, as Short does.
func InBubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	Short(t)
	t.Parallel()
	synctest.Test(t, run)
}

// InLongBubble is InBubble for what is too long for every change.
func InLongBubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	Long(t)
	t.Parallel()
	synctest.Test(t, run)
}
