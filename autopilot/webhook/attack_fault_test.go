// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// blockedWriter is a log whose writes block until the channel is closed.
type blockedWriter struct{ released chan struct{} }

func (b blockedWriter) Write([]byte) (int, error) { <-b.released; return 0, nil }
func (b blockedWriter) Sync() error               { return nil }

func faultAttacks() []attack {
	const unavailable, ignored, stored = resultUnavailable, resultIgnored, resultStored
	// withStore posts an alarm after a change of the store.
	withStore := func(change func(*fakeStore)) func(*harness) {
		return func(s *harness) { change(s.store); s.post(s.alarm(nil).json()) }
	}
	refused := errors.New("refused")
	return []attack{
		{53, "the object is gone", withStore(func(f *fakeStore) { f.down = autopilot.ErrGone }), 200, ignored, 0},
		{53, "the API server is away", withStore(func(f *fakeStore) { f.down = refused }), 503, unavailable, 0},
		{53, "a rule that the cache lacks", withStore(func(f *fakeStore) { f.lacksRules = true }), 200, stored, 1},
		{53, "a rule that the cache lacks, and the API server is away", withStore(func(f *fakeStore) {
			f.lacksRules, f.down = true, refused
		}), 503, unavailable, 0},
		{53, "a rule that the cache lacks, of a namespace that the API server refuses", withStore(func(f *fakeStore) {
			f.lacksRules, f.down = true, &autopilot.RefusedError{}
		}), 200, ignored, 0},
		{53, "20 conflicts, then stored", withStore(func(f *fakeStore) { f.conflict = 20 }), 200, stored, 1},
		{53, "the same message is stored once the API server is back", func(s *harness) {
			withStore(func(f *fakeStore) { f.down = refused })(s)
			withStore(func(f *fakeStore) { f.down = nil })(s)
		}, 200, stored, 1},
		{54, "no slot is free for a large one", func(s *harness) {
			s.receiver.large.TryAcquire(largeSlots)
			s.post(s.alarm(nil).json() + strings.Repeat(" ", smallBody))
		}, 503, resultIncomplete, 0},
		{54, "large ones have no slot, and an alarm is stored", func(s *harness) {
			s.receiver.large.TryAcquire(largeSlots)
			s.post(s.alarm(nil).json())
		}, 200, stored, 1},
		{56, "a panic, and the process lives", func(s *harness) {
			withStore(func(f *fakeStore) { f.panics = true })(s)
		}, 503, unavailable, 0},
		{57, "a subject is in no log", func(s *harness) { s.post(s.alarm(m{"subject": "pa55word"}).json()) }, 200, stored, 1},
		{57, "a link whose host has 2 KB", func(s *harness) {
			s.post(s.confirmation(m{"subscribe_url": "https://" + strings.Repeat("x", 1900) + "/?token=" + token}).json())
		}, 200, ignored, 0},
		{57, "a message of 100 KB of escape sequences", withMessage(strings.Repeat("\x1b[31mpa55word", 8000)),
			200, resultUnreadable, 0},
		{59, "our clock jumps back an hour", func(s *harness) {
			body := event(s, 1, "alarm", noon())
			s.setNow(noon().Add(-time.Hour))
			s.post(body)
		}, 403, resultExpired, 0},
		{60, "the log blocks, and the message is answered", func(s *harness) {
			log := blockedWriter{make(chan struct{})}
			s.receiver.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), log, zapcore.DebugLevel))
			s.post(s.alarm(nil).json())
			close(log.released)
		}, 200, "", 1},
	}
}

// Case 12: each message is judged by its own fields, even if others arrive at the same time.
func TestConcurrentMessagesDoNotShareFields(t *testing.T) {
	s := newHarness(t)
	bodies := map[string]string{
		s.confirmation(nil).json(): "confirmed",
		s.confirmation(m{"subscribe_url": "https://" + elsewhereHost + "/"}).json(): "ignored",
		s.alarm(nil).with("subscribe_url", "https://"+elsewhereHost+"/").json():     "stored",
		s.alarm(m{"topic_urn": theirTopic}).json():                                  "foreign",
		s.alarm(nil).with("message_id", strings.Repeat("0", 32)).json():             "forged",
		`{"type":"Notification"}`:                                                   "malformed",
		`{"type":"HttpSubscriptionUserConfirm"}`:                                    "ignored",
	}
	var all sync.WaitGroup
	for range 8 {
		for body, want := range bodies {
			all.Go(func() {
				resp := httptest.NewRecorder()
				s.receiver.ServeHTTP(resp, httptest.NewRequest(http.MethodPost, "/smn", strings.NewReader(body)))
				got := strings.TrimSpace(resp.Body.String())
				if got != want && (want != "stored" || got != "duplicate") {
					t.Errorf("%.60s was answered %s, want %s", body, got, want)
				}
			})
		}
	}
	all.Wait()
	s.checkSecrets()
	if n := s.console.requests.Load(); n != 8 || s.store.writes != 1 {
		t.Errorf("%d confirmations and %d writes, want 8 and 1", n, s.store.writes)
	}
}
