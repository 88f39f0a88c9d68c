// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"net/netip"
	"testing"
)

func TestHostsAreComparedInOneForm(t *testing.T) {
	for entry, want := range map[string]struct{ name, private string }{
		"smn.example":                   {"smn.example", ""},
		"SMN.Example":                   {"smn.example", ""},
		"smn.example:443":               {"smn.example", ""},
		"smn.example:8443":              {"smn.example:8443", ""},
		"127.0.0.1:8443":                {"127.0.0.1:8443", ""},
		"[::1]:8443":                    {"[::1]:8443", ""},
		"smn.example=10.1.2.3":          {"smn.example", "10.1.2.3/32"},
		"smn.example:8443=10.0.0.0/8":   {"smn.example:8443", "10.0.0.0/8"},
		"smn.example=fd00:1::/64":       {"smn.example", "fd00:1::/64"},
		"https://smn.example":           {},
		"smn.example/smn":               {},
		"smn.example:":                  {},
		"smn.example:port":              {},
		"*.example":                     {},
		"me@smn.example":                {},
		"smn example":                   {},
		"=10.0.0.0/8":                   {},
		"smn.example=":                  {},
		"smn.example=smn.internal":      {},
		"smn.example=10.0.0.0/8=10.1.1": {},
		"":                              {},
	} {
		name, private, err := ParseHost(entry)
		if (err != nil) != (want.name == "") || name != want.name || private != prefix(want.private) {
			t.Errorf("%q: %q, %v, %v", entry, name, private, err)
		}
	}
}

func prefix(s string) netip.Prefix {
	p, _ := netip.ParsePrefix(s)
	return p
}
