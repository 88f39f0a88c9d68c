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

// hasForm reports whether the text has least to most characters, all of the alphabet.
func hasForm(s string, least, most int, alphabet string) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, alphabet) == ""
}

// isName reports whether the text has 1 to most characters of the alphabet and begins with a letter.
func isName(s string, most int, alphabet string) bool {
	return s != "" && strings.Contains(letters, s[:1]) && hasForm(s, 1, most, alphabet)
}

// isPrintable reports whether the text has least to most characters of ASCII, without spaces and control characters.
func isPrintable(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
