// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// stuck is a log whose writes hang.
type stuck struct{ forever chan struct{} }

func (s stuck) Write([]byte) (int, error) { <-s.forever; return 0, nil }
func (s stuck) Sync() error               { return nil }

func faultAttacks() []attack {
	const away, stored = resultUnavailable, resultStored
	down := func(text string) func(*harness) {
		return func(s *harness) { s.store.down = errors.New(text); s.post(s.alarm(nil).json()) }
	}
	said := func(alter m) func(*harness) { return func(s *harness) { s.post(s.alarm(alter).json()) } }
	return []attack{
		{53, "the object is gone", func(s *harness) { s.store.down = autopilot.ErrGone; s.post(s.alarm(nil).json()) }, 200, resultIgnored, 0},
		{53, "the API server is away", down("refused"), 503, away, 0},
		{53, "a topic that the cache lacks", func(s *harness) { s.store.cacheLacksTopic = true; s.post(s.alarm(nil).json()) }, 200, stored, 1},
		{53, "a rule that the cache lacks", func(s *harness) { s.store.cacheLacksRules = true; s.post(s.alarm(nil).json()) }, 200, stored, 1},
		{53, "a rule that the cache lacks, and the API server is away", func(s *harness) {
			s.store.cacheLacksRules, s.store.down = true, errors.New("refused")
			s.post(s.alarm(nil).json())
		}, 503, away, 0},
		{53, "20 conflicts, then stored", func(s *harness) { s.store.conflict = 20; s.post(s.alarm(nil).json()) }, 200, stored, 1},
		{53, "the API server is back: the same message is stored", func(s *harness) {
			down("refused")(s)
			s.store.down = nil
			s.post(s.alarm(nil).json())
		}, 200, stored, 1},
		{54, "no slot is free", func(s *harness) {
			s.receiver.slots.TryAcquire(inFlight)
			s.post(s.alarm(nil).json())
		}, 503, resultLimited, 0},
		{54, "no slot is free for a large one", func(s *harness) {
			s.receiver.large.TryAcquire(largeSlots)
			s.post(s.alarm(nil).json() + strings.Repeat(" ", smallBody))
		}, 503, resultLimited, 0},
		{54, "large ones have no slot, and an alarm is stored", func(s *harness) {
			s.receiver.large.TryAcquire(largeSlots)
			s.post(s.alarm(nil).json())
		}, 200, stored, 1},
		{54, "forty strangers stall with large bodies, and a large alarm is stored", func(s *harness) {
			for range 40 {
				defer s.stall(smallBody + 1).Close()
			}
			for s.receiver.large.TryAcquire(1) { // until they have all places
				s.receiver.large.Release(1)
				time.Sleep(time.Millisecond)
			}
			s.post(s.alarm(nil).json() + strings.Repeat(" ", 2*smallBody))
		}, 200, stored, 1},
		{54, "one confirmation more than at a time, and none of them ends", func(s *harness) {
			forged := s.confirmation(nil)
			forged["signature"] = "AAAA"
			s.post(forged.json()) // fetches the certificate, for which there is no time then
			s.receiver.confirming.TryAcquire(confirming)
			s.receiver.time = 100 * time.Millisecond
			s.post(s.confirmation(nil).json())
		}, 503, away, 0},
		{56, "a panic, and the process lives", func(s *harness) {
			s.store.panics = true
			s.post(s.alarm(nil).json())
			if n := testutil.ToFloat64(s.receiver.meters.panics); n != 1 {
				s.Errorf("%v panics were counted, want 1", n)
			}
		}, 503, away, 0},
		{57, "a subject with an escape sequence", said(m{"subject": "a\x1b[31mb pa55word"}), 400, resultMalformed, 0},
		{57, "a subject is in no log", said(m{"subject": "pa55word"}), 200, stored, 1},
		{57, "a link whose host is 2 KB of line feeds and colours", func(s *harness) {
			s.post(s.confirmation(m{"subscribe_url": "https://" + strings.Repeat("x", 1900) + "/?token=" + token}).json())
		}, 200, resultIgnored, 0},
		{57, "a type that is no label", said(m{"type": "pa55word\x1b"}), 400, resultMalformed, 0},
		{57, "a message of 100 KB of colours", said(m{"message": strings.Repeat("\x1b[31mpa55word", 8000)}), 200, resultUnreadable, 0},
		{59, "our clock jumps back an hour", func(s *harness) {
			body := event(s, 1, "alarm", noon())
			s.at(noon().Add(-time.Hour))
			s.post(body)
		}, 403, resultExpired, 0},
		{60, "the log takes nothing: the answer goes out all the same", func(s *harness) {
			forever := make(chan struct{})
			s.receiver.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), stuck{forever}, zapcore.DebugLevel))
			s.post(s.alarm(nil).json())
			close(forever)
		}, 200, "", 1},
	}
}

// stall sends so much of a body that is longer.
func (s *harness) stall(sent int) net.Conn {
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /smn HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", MaxBody, strings.Repeat(" ", sent))
	return conn
}

// Case 12: each message is judged by its own fields, even if others arrive at the same time.
func TestConcurrentMessagesDoNotShareFields(t *testing.T) {
	s := newHarness(t)
	s.post(s.confirmation(nil).json())
	bodies := map[string]string{
		s.confirmation(nil).json(): "duplicate",
		s.confirmation(m{"subscribe_url": "https://" + elsewhereHost + "/"}).json(): "duplicate",
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
	if n := s.gets[1].Load(); n != 1 || s.store.writes != 2 {
		t.Errorf("%d confirmations and %d writes, want 1 and 2", n, s.store.writes)
	}
}
