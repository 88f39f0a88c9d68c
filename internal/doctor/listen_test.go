// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot/webhook"
)

// A malformed message names no topic, and anyone can post one.
func TestListenKeepsAFewMalformedMessages(t *testing.T) {
	t.Parallel()
	m := &localMailbox{now: time.Now}
	m.receiver = webhook.New(webhook.Options{
		Path: "/smn", Store: m, OurTopics: func(string) bool { return false }, Log: zap.NewNop(),
		Reg: prometheus.NewRegistry(), Now: time.Now,
	})
	post := func(method, body string, want int) {
		t.Helper()
		w := httptest.NewRecorder()
		m.receive(w, httptest.NewRequest(method, "/smn", strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
	}
	post(http.MethodGet, "", http.StatusMethodNotAllowed)
	post(http.MethodPost, `{"type":"Notification","message_id":7,"signature":"secret"}`, http.StatusBadRequest)
	for range 2 * maxMalformed {
		post(http.MethodPost, "no JSON", http.StatusBadRequest)
	}
	_, kept, err := m.read(t.Context())
	if err != nil || len(kept) != maxMalformed {
		t.Fatalf("%v: kept %d", err, len(kept))
	}
	first := kept[0]
	if !first.malformed || first.problem == "" || strings.Contains(first.body, "secret") ||
		!strings.Contains(first.body, "message_id") {
		t.Errorf("%+v", first)
	}
	x := newExamination(Options{})
	x.keepMessages(kept[:1])
	x.keepMessages(kept)
	if len(x.seen.messages) != len(kept) {
		t.Errorf("read %d messages", len(x.seen.messages))
	}
	if r := x.noConfirmation()[0]; !strings.Contains(r.Text, "not in SMN's form") {
		t.Errorf("%+v", r)
	}
}
