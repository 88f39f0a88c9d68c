// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/world"
)

// The demo fails by itself if a database does not grow as expected, or if something happens that should not.
func TestDemoEndsAsExpected(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := demo(world.Within(t), newConsole(&out), worldOptions{real: apiserver.Real()}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if text := out.String(); !strings.Contains(text, " as expected") || !strings.Contains(text, "make sandbox") {
		t.Errorf("the end is missing:\n%s", text)
	}
}
