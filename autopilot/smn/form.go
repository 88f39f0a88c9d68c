// SPDX-License-Identifier: Apache-2.0

package smn

import "strings"

// Alphabets of the fields.
const (
	digits     = "0123456789"
	lower      = "abcdefghijklmnopqrstuvwxyz"
	upper      = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters    = lower + upper
	hex        = digits + "abcdef"
	identifier = letters + digits + "_"
)

func hasForm(s string, least, most int, alphabet string) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, alphabet) == ""
}

func isName(s string, most int, alphabet string) bool {
	return s != "" && strings.Contains(letters, s[:1]) && hasForm(s, 1, most, alphabet)
}

func isPrintable(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
