// SPDX-License-Identifier: Apache-2.0

package level_test

import (
	"fmt"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/level"
)

// said is a test that keeps what it is told.
type said string

func (*said) Helper()                        {}
func (s *said) Skipf(f string, args ...any)  { *s = said("skip: " + fmt.Sprintf(f, args...)) }
func (s *said) Fatalf(f string, args ...any) { *s = said("fail: " + fmt.Sprintf(f, args...)) }

func TestEachLevelRunsItsTests(t *testing.T) {
	for name, want := range map[string]struct {
		short, long, soak said
		isLong            bool
	}{
		"":     {"", "skip: LEVEL=long runs it", "skip: LEVEL=soak runs it", false},
		"long": {"skip: make test runs it", "", "skip: LEVEL=soak runs it", true},
		"soak": {"skip: make test runs it", "", "", true},
	} {
		t.Setenv(level.Variable, name)
		var short, long, soak said
		level.Short(&short)
		level.Long(&long)
		level.Soak(&soak)
		if short != want.short || long != want.long || soak != want.soak || level.IsLong(t) != want.isLong {
			t.Errorf("level %q: %q, %q, %q, long: %t", name, short, long, soak, level.IsLong(t))
		}
	}
	t.Setenv(level.Variable, "longer")
	var unknown said
	level.IsLong(&unknown)
	if unknown != "fail: LEVEL=longer: there are long and soak" {
		t.Errorf("%q", unknown)
	}
}
