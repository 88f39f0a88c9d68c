// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"strings"
	"testing"
)

// regionOfCloud is a cloud whose SMN host is empty before the first login.
type regionOfCloud struct{ region, smn string }

func (w *regionOfCloud) Region() string  { return w.region }
func (w *regionOfCloud) SMNHost() string { return w.smn }

func TestHostsFollowTheCatalogueAndTheRegion(t *testing.T) {
	const ch2 = "smn.eu-ch2.sc.otc.t-systems.com"
	override := map[string]string{"smn": "https://proxy.example"}
	for _, tc := range []struct {
		name    string
		options Options
		region  string
		smn     string
		cert    string
		confirm string // empty: it is required
	}{
		{"eu-de", Options{}, "eu-de", "smn.eu-de.otc.t-systems.com", "smn.eu-de.otc.t-systems.com", Console},
		{"eu-nl", Options{}, "eu-nl", "smn.eu-nl.otc.t-systems.com", "smn.eu-nl.otc.t-systems.com", Console},
		{"eu-ch2", Options{}, "eu-ch2", ch2, ch2, ""},
		{"an unknown region", Options{}, "eu-xx", "smn.cloud.example:8443", "smn.cloud.example:8443", ""},
		{"eu-de, not reached yet", Options{}, "eu-de", "", "smn.eu-de.otc.t-systems.com", Console},
		{"eu-ch2, not reached yet", Options{}, "eu-ch2", "", ch2, ""},
		{"another endpoint of SMN", Options{Endpoints: override}, "eu-de", "proxy.example", "smn.eu-de.otc.t-systems.com", Console},
		{"given", Options{CertHosts: []string{"a.example"}, ConfirmHosts: []string{"b.example"}}, "eu-ch2", ch2, "a.example", "b.example"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := CertHosts(tc.options, &regionOfCloud{tc.region, tc.smn})(); !slices.Equal(got, []string{tc.cert}) {
				t.Errorf("certificates from %v, want %s", got, tc.cert)
			}
			got, err := ConfirmHosts(tc.options, tc.region)
			if tc.confirm == "" {
				if err == nil || !strings.Contains(err.Error(), "--smn-confirm-hosts") || strings.Contains(err.Error(), "\n") {
					t.Errorf("confirmed at %v, %v; want it required", got, err)
				}
			} else if err != nil || !slices.Equal(got, []string{tc.confirm}) {
				t.Errorf("confirmed at %v, %v; want %s", got, err, tc.confirm)
			}
		})
	}
}
