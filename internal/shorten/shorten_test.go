// SPDX-License-Identifier: Apache-2.0

package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestToKeepsWholeCharactersWithinTheLimit(t *testing.T) {
	for _, s := range []string{strings.Repeat("a", 3000), strings.Repeat("ü", 600), "a" + strings.Repeat("€", 400)} {
		got := To(s, 1024)
		if len(got) > 1024 || len(got) < 1024-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, ellipsis) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got := To("short", 1024); got != "short" {
		t.Errorf("got %q", got)
	}
}

func TestForeignReturnsOneLineWithinTheLimit(t *testing.T) {
	got := Foreign("denied:\n\n  rule one\n" + strings.Repeat("größer ", 10_000) + "unknown field\n")
	if len(got) > Limit || strings.Contains(got, "\n") || !utf8.ValidString(got) ||
		!strings.HasPrefix(got, "denied: rule one größer") || !strings.HasSuffix(got, "größer unknown field") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
