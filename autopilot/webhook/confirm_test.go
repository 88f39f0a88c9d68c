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

func TestConfirmationCallsTheLinkOnceAndFollowsNothing(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		want   int
		result result
		stored bool
		warned string // somewhere in the warning
	}{
		{"it works", 200, 200, resultConfirmed, true, ""},
		{"it works, and has nothing to say", 204, 200, resultConfirmed, true, ""},
		{"a redirect is not followed", 302, 200, resultUnconfirmed, true, "status 302"},
		{"refused", 403, 200, resultUnconfirmed, true, "status 403"},
		{"expired: the list will tell", 404, 200, resultUnconfirmed, true, "status 404"},
		{"too many requests: try again", 429, 503, resultUnavailable, false, ""},
		{"try again", 500, 503, resultUnavailable, false, ""},
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

func TestConfirmLinkRefuses(t *testing.T) {
	const good = "https://console.example/smn/subscription/confirm?topic_urn=" + ourTopic
	if _, err := confirmLink(good, []string{"console.example"}, ourTopic); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{
		strings.Replace(good, "https", "http", 1), strings.Replace(good, "console.example", "console.example:443", 1),
		strings.Replace(good, "console.example", "x@console.example", 1), strings.Replace(good, "console.example", "console.example.evil", 1),
		strings.Replace(good, "/smn", "/x/../smn", 1), strings.Replace(good, "/smn", "/%73mn", 1),
		good + "&topic_urn=" + newTopic, good + "&topic_urn=" + ourTopic, good + "#x", good + "%zz", "//console.example", "",
	} {
		if got, err := confirmLink(link, []string{"console.example"}, ourTopic); err == nil {
			t.Errorf("%s became %s", link, got)
		}
	}
}
