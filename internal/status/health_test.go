// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/status"
)

func TestHealthShowsTheCertificateOfThePublicURL(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		certificate status.Certificate
		want, state string
	}{
		"good":    {status.Certificate{Expires: now().Add(60 * 24 * time.Hour)}, "Certificate of the public URL expires in 60d 2027-01-21 12:00:00 UTC", "state good"},
		"soon":    {status.Certificate{Expires: now().Add(72 * time.Hour), LastDays: true}, "expires in 3d", "state bad"},
		"expired": {status.Certificate{Expires: now().Add(-72 * time.Hour), LastDays: true, Invalid: "it is <expired>"}, "expires 3d ago 2026-11-19 12:00:00 UTC It is not valid: it is <expired>", "state bad"},
		"away":    {status.Certificate{Unread: "i/o timeout"}, "Certificate of the public URL This replica cannot read it now: i/o timeout", ""},
		"begun":   {status.Certificate{}, "Certificate of the public URL not read yet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newPage(t, func(o *status.Options) { o.Certificate = func() status.Certificate { return tc.certificate } })
			root := get(t, h, "/health", http.StatusOK)
			if page := text(root); !strings.Contains(page, tc.want) {
				t.Errorf("the page lacks %q: %s", tc.want, page)
			}
			if tc.state != "" && len(classed(root, "span", tc.state)) == 0 {
				t.Errorf("no %s", tc.state)
			}
		})
	}
	if page := text(get(t, handler(t, &cache{}), "/health", http.StatusOK)); strings.Contains(page, "Certificate") {
		t.Error("a page of a service with an http URL has a certificate")
	}
}
