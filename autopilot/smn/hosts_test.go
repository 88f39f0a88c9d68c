// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"errors"
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

func TestCertURLRefusesOtherPlaces(t *testing.T) {
	const host, p = "smn.eu-de.otc.t-systems.com", "/smn/SMN_eu-de_0f1e2d3c4b5a69788796a5b4c3d2e1f0.pem"
	if err := CertURL("https://"+host+p, []string{host}); err != nil {
		t.Error(err)
	}
	for _, url := range []string{
		"https://" + host + "@evil.example" + p, "https://user@" + host + p, "https://user:password@" + host + p,
		"https://evil.example#@" + host + p, "https://evil.example?@" + host + p, `https://evil.example\@` + host + p,
		"https://" + host + ":443" + p, "https://" + host + ":8443" + p, "https://" + host + "." + p, "https://" + host + ".evil.example" + p,
		"https://x." + host + p, "https://evil-" + host + p, "https://SMN.eu-de.otc.t-systems.com" + p, "https://smn.eu-de.otс.t-systems.com" + p,
		"https://smn。eu-de.otc.t-systems.com" + p, "https://smn%2eeu-de.otc.t-systems.com" + p, "https://[::1]" + p, "https://" + host + "\n" + p,
		"https://" + host + "\x00" + p, "https://smn.obs.eu-de.otc.t-systems.com" + p, "https://obs.eu-de.otc.t-systems.com/smn" + p,
		"http://" + host + p, "//" + host + p, "file://" + host + p, "https:" + host + p, "https:/" + host + p, "HTTPS://" + host + p, "",
		"https://" + host + "/smn/../smn" + p[4:], "https://" + host + "/smn/%2e%2e" + p, "https://" + host + "/smn%2f" + p[5:],
		"https://" + host + "/" + p, "https://" + host + "/bucket" + p, "https://" + host + p + "?redirect=x", "https://" + host + p + "?",
		"https://" + host + p + "#", "https://" + host + p + ";x", "https://" + host + "/smn/SMN_eu-de_0f1e.pem", "https://" + host + p + "\n",
	} {
		if err := CertURL(url, []string{host}); !errors.Is(err, ErrForged) {
			t.Errorf("%q: %v, want ErrForged", url, err)
		}
	}
}
