// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
)

// attack is a case: what it sends, the last answer that it must get, and the number of writes to the store. Its number
// is that in testdata/attacks.md.
type attack struct {
	no     int
	name   string
	run    func(*harness)
	status int
	result result // empty if the answer comes before the message is counted
	writes int
}

func TestAttackTable(t *testing.T) {
	var rows []attack
	for _, part := range [][]attack{
		envelopeAttacks(), signatureAttacks(), certificateAttacks(), foreignAttacks(), replayAttacks(), faultAttacks(),
	} {
		rows = append(rows, part...)
	}
	for _, a := range rows {
		name := fmt.Sprintf("%d %s", a.no, a.name)
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			a.run(s)
			s.server.Close() // the work that follows an answer has ended then
			var got answered
			if len(s.answers) > 0 {
				got = s.answers[len(s.answers)-1]
			}
			if got.status != a.status || a.result != "" && got.text != string(a.result) {
				t.Errorf("answered %d %s, want %d %s; logs %v", got.status, got.text, a.status, a.result, s.logs.All())
			}
			if s.store.writes != a.writes {
				t.Errorf("%d writes, want %d", s.store.writes, a.writes)
			}
			s.checkRequests(a)
			s.checkCounted(a)
			s.checkSecrets()
		})
	}
}

// checkRequests fails if a message caused requests or warnings that it must not cause, because anyone can post.
func (s *harness) checkRequests(a attack) {
	s.Helper()
	unsigned := []result{resultForged, resultForeign, resultMalformed, resultTooLarge, resultExpired}
	if a.writes == 0 && slices.Contains(unsigned, a.result) && s.store.calls > 0 {
		s.Errorf("%d calls of the API server", s.store.calls)
	}
	if n := s.cert.requests.Load(); a.writes == 0 && slices.Contains(unsigned[1:], a.result) && n > 0 {
		s.Errorf("%d requests for a certificate", n)
	}
	called := []result{resultConfirmed, resultUnconfirmed, resultUnavailable}
	if warned := strings.Contains(strings.Join(s.warnings, " "), reasonUnreadable); warned != (a.result == resultUnreadable) {
		s.Errorf("the warnings are %q", s.warnings)
	}
	if n := s.console.requests.Load(); !slices.Contains(called, a.result) && n > 0 {
		s.Errorf("%d links were called", n)
	}
}

// checkCounted compares the metric with the number of answers.
func (s *harness) checkCounted(a attack) {
	s.Helper()
	if a.result == "" {
		return
	}
	s.mu.Lock()
	want := 0
	for _, got := range s.answers {
		if got.text == string(a.result) {
			want++
		}
	}
	s.mu.Unlock()
	sum := 0.0
	for _, typ := range []string{"Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation", typeOther} {
		sum += testutil.ToFloat64(s.receiver.meters.notifications.WithLabelValues(typ, string(a.result)))
	}
	if int(sum) != want || want == 0 {
		s.Errorf("%v messages were counted as %s, and %d were answered so", sum, a.result, want)
	}
}

// checkSecrets fails if a log line, an event, a metric or an answer contains a secret or control characters.
func (s *harness) checkSecrets() {
	s.Helper()
	var out strings.Builder
	for _, l := range s.logs.All() {
		line := l.Message
		for _, f := range l.Context {
			line += fmt.Sprint(" ", f.Key, "=", f.String, f.Interface)
			if f.Key == "error" && len(f.String) > shorten.Limit {
				s.Errorf("a log line of %d bytes", len(f.String))
			}
		}
		if strings.ContainsAny(line, "\x1b\x00\r") {
			s.Errorf("control characters in a log line: %q", line)
		}
		out.WriteString(line + "\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.answers {
		out.WriteString(a.text + "\n")
	}
	out.WriteString(strings.Join(s.warnings, "\n"))
	families, err := s.reg.Gather()
	if err != nil {
		s.Error(err)
	}
	for _, f := range families {
		out.WriteString(f.String() + "\n")
	}
	for _, secret := range append(s.secrets, token, "pa55word", "BEGIN RSA PRIVATE KEY", "subscription/confirm?") {
		if strings.Contains(out.String(), secret) {
			s.Errorf("the output contains %q:\n%s", secret, out.String())
		}
	}
}

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
		}), 503, unavailable, 0},
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
