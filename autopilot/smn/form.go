// SPDX-License-Identifier: Apache-2.0

package smn

import "strings"

// Alphabets of the fields. Full matches are spelled out, not given as regular expressions: to compile one for each
// message costs more than all the rest of reading it.
const (
	digits     = "0123456789"
	lower      = "abcdefghijklmnopqrstuvwxyz"
	upper      = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters    = lower + upper
	hex        = digits + "abcdef"
	identifier = letters + digits + "_"
)

// hasForm reports whether the text has that many characters, and only of that alphabet.
func hasForm(s string, least, most int, alphabet string) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, alphabet) == ""
}

// isName reports whether the text has the form and begins with a letter.
func isName(s string, most int, alphabet string) bool {
	return s != "" && strings.Contains(letters, s[:1]) && hasForm(s, 1, most, alphabet)
}

// isPrintable reports whether the text is ASCII without spaces and control characters.
func isPrintable(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
