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

// form reports whether the text has that many characters, and only of that alphabet.
func form(s string, least, most int, alphabet string) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, alphabet) == ""
}

// name is a form that begins with a letter.
func name(s string, most int, alphabet string) bool {
	return s != "" && strings.Contains(letters, s[:1]) && form(s, 1, most, alphabet)
}

// printable reports whether the text is ASCII without spaces and control characters.
func printable(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
