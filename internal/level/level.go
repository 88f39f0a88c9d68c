// SPDX-License-Identifier: Apache-2.0

// Package level says how much is tested. Without more, go test runs what a change can break. LEVEL=long is for what takes
// minutes, and LEVEL=soak for what takes as long as one likes; make test-long and make soak set it. What a test says nothing
// of runs at every level.
package level

import "os"

// Variable is that of the environment that names the level.
const Variable = "LEVEL"

const (
	long = "long"
	soak = "soak"
)

// Test is the part of *testing.T that is needed.
type Test interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Short skips a test at the levels above: make test has run it, and there it would be the same once more.
func Short(t Test) {
	t.Helper()
	if known(t) != "" {
		t.Skipf("make test runs it")
	}
}

// Long skips a test that is too long for every change, unless the level is long or soak.
func Long(t Test) {
	t.Helper()
	if known(t) == "" {
		t.Skipf("%s=%s runs it", Variable, long)
	}
}

// Soak skips a test unless the level is soak.
func Soak(t Test) {
	t.Helper()
	if !IsSoak(t) {
		t.Skipf("%s=%s runs it", Variable, soak)
	}
}

// IsLong reports whether long tests run.
func IsLong(t Test) bool {
	t.Helper()
	return known(t) != ""
}

// IsSoak reports whether the level is soak.
func IsSoak(t Test) bool {
	t.Helper()
	return known(t) == soak
}

func known(t Test) string {
	t.Helper()
	level := os.Getenv(Variable)
	if level != "" && level != long && level != soak {
		t.Fatalf("%s=%s: there are %s and %s", Variable, level, long, soak)
	}
	return level
}
