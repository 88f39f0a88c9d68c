// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// A malformed message names no topic, so only a receiver of doctor itself can keep it. It keeps few, because anyone can post.
func TestListenKeepsAFewMalformedMessages(t *testing.T) {
	t.Parallel()
	m := &localMailbox{now: time.Now}
	reached := 0
	handler := m.keepMalformed(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	post := func(method, body string) {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/smn", strings.NewReader(body)))
	}
	post(http.MethodGet, "")
	post(http.MethodPost, `{"type":"Notification","message_id":7,"signature":"secret"}`)
	m.object.Status.Intake.Captured = append(m.object.Status.Intake.Captured, v1alpha1.CapturedMessage{Result: "confirmed"})
	for range 2 * maxMalformed {
		post(http.MethodPost, "no JSON")
	}
	kept, err := m.captured(t.Context())
	if err != nil || len(kept) != maxMalformed+1 || reached != 2+2*maxMalformed {
		t.Fatalf("%v: %d kept, %d reached the receiver", err, len(kept), reached)
	}
	if first := kept[0]; first.Result != malformedResult || first.Error == "" || strings.Contains(first.Body, "secret") || !strings.Contains(first.Body, "message_id") {
		t.Errorf("%+v", first)
	}
	x := newExamination(Options{})
	x.keepMessages(kept[:1])
	x.keepMessages(kept)
	if len(x.seen.messages) != len(kept) || x.seen.messages[1].Result != "confirmed" {
		t.Errorf("read %d messages", len(x.seen.messages))
	}
	if r := x.noConfirmation()[0]; !strings.Contains(r.Text, "not in SMN's form") {
		t.Errorf("%+v", r)
	}
}
