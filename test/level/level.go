// SPDX-License-Identifier: Apache-2.0

// Package level decides which tests run, by the environment variable LEVEL. Without it, go test runs what a change can break.
// LEVEL=long runs tests that take minutes and skips those that only repeat make test. LEVEL=soak also runs tests without an
// upper limit. A test that calls nothing of this package runs at every level.
package level

import (
	"os"
	"testing"
	"testing/synctest"
)

// Short skips the test at the levels long and soak, because make test has run it with the same result.
func Short(t testing.TB) {
	t.Helper()
	if IsLong(t) {
		t.Skip("make test runs it")
	}
}

// Long skips the test unless the level is long or soak, because it takes too long for every change.
func Long(t testing.TB) {
	t.Helper()
	if !IsLong(t) {
		t.Skip("LEVEL=long runs it")
	}
}

// IsLong reports whether the level is long or soak. It fails the test if LEVEL has an unknown value, which would skip tests
// without notice.
func IsLong(t testing.TB) bool {
	t.Helper()
	level := os.Getenv("LEVEL")
	if level != "" && level != "long" && level != "soak" {
		t.Fatalf("LEVEL=%s: there are long and soak", level)
	}
	return level != ""
}

// IsSoak reports whether the level is soak.
func IsSoak(t testing.TB) bool {
	t.Helper()
	return IsLong(t) && os.Getenv("LEVEL") == "soak"
}

// InBubble runs a test in parallel with others, on a fake clock. The levels long and soak skip it.
func InBubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	Short(t)
	t.Parallel()
	synctest.Test(t, run)
}

// InLongBubble is InBubble for a test that only the levels long and soak run.
func InLongBubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	Long(t)
	t.Parallel()
	synctest.Test(t, run)
}
