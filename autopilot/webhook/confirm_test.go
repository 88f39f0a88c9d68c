// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestConfirmationCallsItsLinkOnceAndWarnsUnlessConfirmed(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		want   int
		result result
		stored bool
		warned string // somewhere in the warning
	}{
		{"success without a body", 204, 200, resultConfirmed, true, ""},
		{"a redirect is not followed", 302, 200, resultUnconfirmed, true, "status 302"},
		{"expired", 404, 200, resultUnconfirmed, true, "status 404"},
		{"the console fails", 500, 503, resultUnavailable, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := 0
			console := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				if r.URL.Path != confirmPath || r.URL.Query().Get("token") != "secret" {
					t.Errorf("called %s", r.URL)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
			}))
			defer console.Close()
			b := newBench(t)
			u, err := url.Parse(console.URL)
			if err != nil {
				t.Fatal(err)
			}
			b.ConfirmHosts, b.Confirm = []string{u.Host}, console.Client()
			b.Confirm.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			w := b.post(signedBody(map[string]string{
				"type": "SubscriptionConfirmation", "subject": "<none>",
				"subscribe_url": console.URL + confirmPath + "?token=secret&topic_urn=" + ourTopic + "&region=eu-de",
			}))
			if w.Code != tc.want || calls != 1 {
				t.Errorf("status %d after %d calls, want %d after 1", w.Code, calls, tc.want)
			}
			if n := testutil.ToFloat64(b.meters.notifications.WithLabelValues("SubscriptionConfirmation", string(tc.result))); n != 1 {
				t.Errorf("counted as %s %v times, answered %q", tc.result, n, w.Body)
			}
			if stored := b.store.stored.Status.Intake.Subscription != nil; stored != tc.stored {
				t.Errorf("stored %t, want %t", stored, tc.stored)
			}
			if said := strings.Join(b.notes, "\n"); (said == "") != (tc.warned == "") || !strings.Contains(said, tc.warned) || strings.Contains(said, "secret") {
				t.Errorf("warned of %q, want %q", said, tc.warned)
			}
		})
	}
}
