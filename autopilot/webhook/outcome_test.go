// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
)

func TestLogLineOfARefusedMessageNamesTheFailedCheckAndTheReason(t *testing.T) {
	s := newHarness(t)
	altered := alarm("alarm", ruleID, "rds039_disk_util", "another", noon())
	for _, tc := range []struct{ check, body, reason string }{
		{"envelope", s.alarm(nil).with("topic_urn", "<none>").json(), "topic_urn"},
		{"type", s.alarm(m{"type": "Other"}).json(), "the type Other is unknown"},
		{"topic", s.alarm(m{"topic_urn": theirTopic}).json(), "the topic is not ours"},
		{"age", s.alarm(m{"timestamp": "2020-01-01T00:00:00Z"}).json(), "signed at 2020-01-01T00:00:00Z"},
		{"certificate URL", s.alarm(m{"signing_cert_url": "https://evil.example" + certPath}).json(), "not one of --smn-cert-hosts"},
		{"signature", s.alarm(nil).with("message", altered).json(), "the signature does not match"},
		{"message", s.alarm(m{"message": "{}"}).json(), "unreadable"},
		{"rule", s.alarm(m{"message": altered}).json(), "the instance is not ours"},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/smn", strings.NewReader(tc.body))
		s.receiver.ServeHTTP(httptest.NewRecorder(), req)
		lines := s.logs.FilterField(zap.String("check", tc.check)).All()
		if len(lines) != 1 || !strings.Contains(lines[0].ContextMap()["error"].(string), tc.reason) {
			t.Errorf("%s: the lines are %v, want one with %q", tc.check, lines, tc.reason)
		}
	}
}
