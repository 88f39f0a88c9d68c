// SPDX-License-Identifier: Apache-2.0

package smn

import "testing"

func TestHostsAreComparedInOneForm(t *testing.T) {
	for entry, want := range map[string]string{
		"smn.example": "smn.example", "SMN.Example": "smn.example", "smn.example:443": "smn.example",
		"smn.example:8443": "smn.example:8443", "127.0.0.1:8443": "127.0.0.1:8443", "[::1]:8443": "[::1]:8443",
		"https://smn.example": "", "smn.example/smn": "", "smn.example:": "", "smn.example:port": "", "*.example": "",
		"me@smn.example": "", "smn example": "", "smn.example=10.1.2.3": "", "": "",
	} {
		if name, err := ParseHost(entry); (err != nil) != (want == "") || name != want {
			t.Errorf("%q: %q, %v; want %q", entry, name, err, want)
		}
	}
}
