// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestStatusContract(t *testing.T) {
	confirmation := map[string]string{
		"type": "SubscriptionConfirmation", "subject": "<none>",
		"subscribe_url": "https://console.example/smn/subscription/confirm?token=t&topic_urn=" + ourTopic,
	}
	with := func(base map[string]string, key, value string) string {
		m := maps.Clone(base)
		m[key] = value
		return signedBody(m)
	}
	for _, tc := range []struct {
		name     string
		body     string
		before   func(*bench)
		status   int
		result   result
		typ      string
		verified bool // whether anything was asked of the certificate host
		writes   int
	}{
		{"an alarm", signedBody(nil), nil, 200, resultStored, "Notification", true, 1},
		{"an ok", signedBody(map[string]string{"message": alarm("ok", ruleID, "rds039_disk_util", instance, noon())}), nil, 200, resultStored, "Notification", true, 1},
		{"an alarm that names a node", signedBody(map[string]string{"message": alarm("alarm", ruleID, "rds039_disk_util", "00112233445566778899aabbccddeeffno01", noon())}), nil, 200, resultStored, "Notification", true, 1},
		{"the same message again", signedBody(nil), again, 200, resultDuplicate, "Notification", true, 1},
		{"an older alarm", signedBody(map[string]string{"message_id": strings.Repeat("0", 32), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, noon().Add(-time.Minute))}), again, 200, resultStale, "Notification", true, 1},
		{"others write at the same time", signedBody(nil), func(b *bench) { b.store.conflict = 3 }, 200, resultStored, "Notification", true, 1},

		{"a foreign topic", signedBody(map[string]string{"topic_urn": "urn:smn:eu-de:" + strings.Repeat("f", 32) + ":autopilot_ns_db_12345678"}), nil, 200, resultForeign, "Notification", false, 0},
		{"our name in another region", signedBody(map[string]string{"topic_urn": "urn:smn:eu-nl:" + project + ":autopilot_ns_db_12345678"}), nil, 200, resultForeign, "Notification", false, 0},
		{"a topic of ours that is gone", signedBody(map[string]string{"topic_urn": newTopic}), nil, 200, resultForeign, "Notification", false, 0},
		{"a foreign confirmation", with(confirmation, "topic_urn", newTopic), nil, 200, resultForeign, "SubscriptionConfirmation", false, 0},
		{"an unknown type", signedBody(map[string]string{"type": "HttpSubscriptionUserConfirm"}), nil, 200, resultIgnored, "other", false, 0},
		{"an unknown rule", signedBody(map[string]string{"message": alarm("alarm", "al1700000000000zzzzzzzzz", "rds039_disk_util", instance, noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"another metric than the rule's", signedBody(map[string]string{"message": alarm("alarm", ruleID, "rds039_disk_util_x", instance, noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"another instance", signedBody(map[string]string{"message": alarm("alarm", ruleID, "rds039_disk_util", "ffff", noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"another state", signedBody(map[string]string{"message": alarm("insufficient_data", ruleID, "rds039_disk_util", instance, noon())}), nil, 200, resultIgnored, "Notification", true, 0},
		{"no alarm in it", signedBody(map[string]string{"message": "hello"}), nil, 200, resultUnreadable, "Notification", true, 0},
		{"the template schema", signedBody(map[string]string{"message": `{"version":"v1","data":{}}`}), nil, 200, resultUnreadable, "Notification", true, 0},
		{"an unsubscription", with(confirmation, "type", "UnsubscribeConfirmation"), nil, 200, resultStored, "UnsubscribeConfirmation", true, 1},
		{"a confirmation link elsewhere", with(confirmation, "subscribe_url", "https://evil.example/smn/subscription/confirm?topic_urn="+ourTopic), nil, 200, resultIgnored, "SubscriptionConfirmation", true, 0},
		{"a confirmation link of another topic", with(confirmation, "subscribe_url", "https://console.example/smn/subscription/confirm?topic_urn="+newTopic), nil, 200, resultIgnored, "SubscriptionConfirmation", true, 0},

		{"not JSON", "hello", nil, 400, resultMalformed, "other", false, 0},
		{"no signature", signedBody(map[string]string{"signature": "<none>"}), nil, 400, resultMalformed, "other", false, 0},
		{"a body of 1 MiB", strings.Repeat(" ", MaxBody), nil, 400, resultMalformed, "other", false, 0},
		{"one byte more", strings.Repeat(" ", MaxBody+1), nil, 413, resultTooLarge, "other", false, 0},
		{"a forged one", signedBody(map[string]string{"signature": "c2ln"}), nil, 403, resultForged, "Notification", true, 0},
		{"an hour and a second old", signedBody(map[string]string{"timestamp": "2026-11-20T10:59:59Z"}), nil, 403, resultExpired, "Notification", false, 0},
		{"59 minutes old", signedBody(map[string]string{"timestamp": "2026-11-20T11:01:00Z"}), nil, 200, resultStored, "Notification", true, 1},
		{"4 minutes ahead", signedBody(map[string]string{"timestamp": "2026-11-20T12:04:00Z"}), nil, 200, resultStored, "Notification", true, 1},
		{"6 minutes ahead", signedBody(map[string]string{"timestamp": "2026-11-20T12:06:00Z"}), nil, 403, resultExpired, "Notification", false, 0},

		{"the certificate host is away", signedBody(nil), func(b *bench) { b.keys.err = smn.ErrUnavailable }, 503, resultUnavailable, "Notification", true, 0},
		{"the API server is away", signedBody(nil), func(b *bench) { b.store.down = errors.New("refused") }, 503, resultUnavailable, "Notification", true, 0},
		{"a topic cannot be looked up", signedBody(map[string]string{"topic_urn": newTopic}), func(b *bench) { b.store.down = errors.New("refused") }, 503, resultUnavailable, "Notification", false, 0},
		{"a panic", signedBody(nil), func(b *bench) { b.store.panics = true }, 503, resultUnavailable, "Notification", false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			if tc.before != nil {
				tc.before(b)
			}
			asked := b.keys.asked
			w := b.post(tc.body)
			if w.Code != tc.status {
				t.Errorf("status %d, want %d", w.Code, tc.status)
			}
			if n := testutil.ToFloat64(b.meters.notifications.WithLabelValues(tc.typ, string(tc.result))); n != 1 {
				t.Errorf("it was not counted once as %s/%s: %s", tc.typ, tc.result, strings.TrimSpace(w.Body.String()))
			}
			if (b.keys.asked > asked) != tc.verified {
				t.Errorf("verified %d times, want any: %t", b.keys.asked-asked, tc.verified)
			}
			if b.store.writes != tc.writes {
				t.Errorf("%d writes, want %d", b.store.writes, tc.writes)
			}
			if retry := w.Header().Get("Retry-After"); (retry != "") != (tc.status == 503) {
				t.Errorf("Retry-After %q with status %d", retry, tc.status)
			}
		})
	}
}

func again(b *bench) { b.post(signedBody(nil)); b.meters.notifications.Reset() }

func TestOtherPathIs404AndOtherMethodIs405(t *testing.T) {
	for _, tc := range []struct {
		path         string // of the public URL, without escapes
		method, asks string
		status       int
	}{
		{"/smn", http.MethodGet, "/smn", 405},
		{"/smn", http.MethodPost, "/", 404},
		{"/smn", http.MethodPost, "/smn/x", 404},
		{"/smn", http.MethodGet, "/metrics", 404},
		{"/smn", http.MethodPost, "/smn", 400},
		{"/smn", http.MethodPost, "/s%6Dn", 400},
		{"/smn", http.MethodPost, "/old", 400}, // a former public URL, which is still subscribed
		{"/a b", http.MethodPost, "/a%20b", 400},
		{"/ü", http.MethodPost, "/%C3%BC", 400},
		{"/{x}", http.MethodPost, "/%7Bx%7D", 400},
		{"/{x}", http.MethodPost, "/y", 404},
		{"/a*b", http.MethodPost, "/a*b", 400},
		{"/a*b", http.MethodPost, "/axb", 404},
		{"", http.MethodPost, "/", 400},
	} {
		b := newBench(t)
		o := b.Options
		o.Path, o.Reg = tc.path, prometheus.NewRegistry()
		w := httptest.NewRecorder()
		New(o).ServeHTTP(w, httptest.NewRequest(tc.method, tc.asks, nil))
		if w.Code != tc.status {
			t.Errorf("%q: %s %s: status %d, want %d", tc.path, tc.method, tc.asks, w.Code, tc.status)
		}
	}
}

func TestIdleConnectionOutlivesAProxysKeepAlive(t *testing.T) {
	if idle := newBench(t).Server().IdleTimeout; idle <= time.Minute { // nginx's
		t.Errorf("closed after %s: a proxy may just be sending on it", idle)
	}
}

func TestUnreadableAlarmAndRefusedLinkCauseWarnings(t *testing.T) {
	b := newBench(t)
	b.post(signedBody(map[string]string{"message": "hello"}))
	b.post(signedBody(map[string]string{"type": "SubscriptionConfirmation", "subject": "<none>", "subscribe_url": "https://evil.example/"}))
	if len(b.warnings) != 2 || b.warnings[0] != reasonUnreadable || b.warnings[1] != reasonConfirm {
		t.Errorf("warnings %v", b.warnings)
	}
}

// FuzzAlarm in autopilot/smn has the other invalid values.
func TestInvalidValueIsOmittedAndTheAlarmIsStored(t *testing.T) {
	future := strconv.FormatInt(noon().Add(time.Hour).UnixMilli(), 10)
	for name, value := range map[string]string{"text": `"93.1"`, "datapoint in the future": `93.1},{"time":` + future + `,"value":1`} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.post(signedBody(map[string]string{"message": strings.Replace(alarm("alarm", ruleID, "rds039_disk_util", instance, noon()), "93.1", value, 1)}))
			signals := b.store.stored.Status.Intake.Signals
			if w.Code != http.StatusOK || len(signals) != 1 {
				t.Fatalf("status %d, %s, signals %+v", w.Code, w.Body, signals)
			}
			if s := signals[0]; s.ValuePercent != "" || s.DatapointTime != nil || s.State != v1alpha1.StateAlarm {
				t.Errorf("stored %+v", s)
			}
		})
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	reg := prometheus.NewRegistry()
	newMeters(reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
