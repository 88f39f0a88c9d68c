// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// hangingKeys and hangingStore return only when the context ends.
type (
	hangingKeys  struct{ *fakeKeys }
	hangingStore struct{ *fakeStore }
)

func (hangingKeys) Key(ctx context.Context, _, _ string, _ bool) (*rsa.PublicKey, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hangingStore) WriteIntake(ctx context.Context, _ *v1alpha1.RdsAutopilot, _ v1alpha1.Intake) error {
	<-ctx.Done()
	return ctx.Err()
}

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
	rows := []attack{
		{53, "F", "the object is gone", func(s *harness) { s.store.down = autopilot.ErrGone; s.post(s.alarm(nil).json()) }, 200, resultIgnored, 0},
		{53, "F", "20 conflicts, then stored", func(s *harness) { s.store.conflict = 20; s.post(s.alarm(nil).json()) }, 200, stored, 1},
		{53, "F", "the API server is back: the same message is stored", func(s *harness) {
			down("refused")(s)
			s.store.down = nil
			s.post(s.alarm(nil).json())
		}, 200, stored, 1},
		{54, "F", "no slot is free", func(s *harness) {
			s.receiver.slots.TryAcquire(inFlight)
			s.post(s.alarm(nil).json())
		}, 503, resultLimited, 0},
		{54, "F", "no slot is free for a large one", func(s *harness) {
			s.receiver.large.TryAcquire(largeSlots)
			s.post(s.alarm(nil).json() + strings.Repeat(" ", smallBody))
		}, 503, resultLimited, 0},
		{54, "F", "large ones have no slot, and an alarm is stored", func(s *harness) {
			s.receiver.large.TryAcquire(largeSlots)
			s.post(s.alarm(nil).json())
		}, 200, stored, 1},
		{54, "F", "forty strangers stall with large bodies, and a large alarm is stored", func(s *harness) {
			for range 40 {
				defer s.stall(smallBody + 1).Close()
			}
			for s.receiver.large.TryAcquire(1) { // until they have all places
				s.receiver.large.Release(1)
				time.Sleep(time.Millisecond)
			}
			s.post(s.alarm(nil).json() + strings.Repeat(" ", 2*smallBody))
		}, 200, stored, 1},
		{54, "F", "one confirmation more than at a time, and none of them ends", func(s *harness) {
			forged := s.confirmation(nil)
			forged["signature"] = "AAAA"
			s.post(forged.json()) // fetches the certificate, for which there is no time then
			s.receiver.confirming.TryAcquire(confirming)
			s.receiver.time = 100 * time.Millisecond
			s.post(s.confirmation(nil).json())
		}, 503, away, 0},
		{56, "F", "a panic, and the process lives", func(s *harness) {
			s.store.panics = true
			s.post(s.alarm(nil).json())
			if n := testutil.ToFloat64(s.receiver.meters.panics); n != 1 {
				s.Errorf("%v panics were counted, want 1", n)
			}
		}, 503, away, 0},
		{57, "F", "a subject with a line feed", said(m{"subject": "a\nb pa55word"}), 400, resultMalformed, 0},
		{57, "F", "a subject with an escape sequence", said(m{"subject": "a\x1b[31mb pa55word"}), 400, resultMalformed, 0},
		{57, "F", "a subject of 100 KB", said(m{"subject": strings.Repeat("pa55word", 12500)}), 400, resultMalformed, 0},
		{57, "F", "a subject is in no log", said(m{"subject": "pa55word"}), 200, stored, 1},
		{57, "F", "a link whose host is 2 KB of line feeds and colours", func(s *harness) {
			s.post(s.confirmation(m{"subscribe_url": "https://" + strings.Repeat("x", 1900) + "/?token=" + token}).json())
		}, 200, resultIgnored, 0},
		{57, "F", "a type of 100 KB", said(m{"type": strings.Repeat("x", 100000)}), 400, resultMalformed, 0},
		{57, "F", "a type that is no label", said(m{"type": "pa55word\x1b"}), 400, resultMalformed, 0},
		{57, "F", "a rule of 100 KB", said(m{"message": alarm("alarm", "al"+strings.Repeat("x", 100000), "rds039_disk_util", instance, noon())}), 200, resultUnreadable, 0},
		{57, "F", "a message of 100 KB of colours", said(m{"message": strings.Repeat("\x1b[31mpa55word", 8000)}), 200, resultUnreadable, 0},
		{59, "F", "our clock jumps back an hour", func(s *harness) {
			body := event(s, 1, "alarm", noon())
			s.at(noon().Add(-time.Hour))
			s.post(body)
		}, 403, resultExpired, 0},
		{59, "F", "our clock jumps back, and forth again: the certificate is kept", func(s *harness) {
			s.post(event(s, 1, "alarm", noon()))
			s.at(noon().Add(-time.Minute))
			s.post(event(s, 2, "alarm", noon().Add(time.Minute)))
			s.at(noon().Add(2 * time.Minute))
			s.post(event(s, 3, "alarm", noon().Add(2*time.Minute)))
		}, 200, stored, 3},
		{60, "F", "the log takes nothing: the answer goes out all the same", func(s *harness) {
			forever := make(chan struct{})
			s.receiver.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), stuck{forever}, zapcore.DebugLevel))
			s.post(s.alarm(nil).json())
			close(forever)
		}, 200, "", 1},
	}
	return append(rows, each(53, "F", "the API server", []string{
		"connection refused", "context deadline exceeded", "429 Too Many Requests", "403 Forbidden", "422 Unprocessable Entity", "500 Internal Server Error",
		"x509: certificate signed by unknown authority", "unexpected EOF",
	}, 503, away, 0, func(s *harness, text string) { down(text)(s) })...)
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

func TestReceiverAnswers503WithinFourSecondsWhenItsWorkHangs(t *testing.T) {
	for name, alter := range map[string]func(*bench){
		"the certificate":   func(b *bench) { b.Keys = hangingKeys{b.keys} },
		"the API server":    func(b *bench) { b.Store = hangingStore{b.store} },
		"endless conflicts": func(b *bench) { b.store.conflict = 1 << 30; b.Store = slow{b.store} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				alter(b)
				start := time.Now()
				w := b.post(signedBody(nil))
				if took := time.Since(start); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || took > 4*time.Second {
					t.Errorf("status %d after %s, want 503 with Retry-After within 4 s", w.Code, took)
				}
				if !b.slots.TryAcquire(inFlight) {
					t.Error("a slot was not released")
				}
			})
		})
	}
}

// slow is a store that needs 100 ms for each write.
type slow struct{ *fakeStore }

func (s slow) WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	time.Sleep(100 * time.Millisecond)
	return s.fakeStore.WriteIntake(ctx, read, in)
}

// Case 12: each message is judged by its own fields, even if others arrive at the same time.
func TestConcurrentMessagesDoNotShareFields(t *testing.T) {
	s := newHarness(t)
	s.post(s.confirmation(nil).json())
	bodies := map[string]string{
		s.confirmation(nil).json(): "duplicate",
		s.confirmation(m{"subscribe_url": "https://" + s.trap + "/"}).json(): "duplicate",
		s.alarm(nil).with("subscribe_url", "https://"+s.trap+"/").json():     "stored",
		s.alarm(m{"topic_urn": theirTopic}).json():                           "foreign",
		s.alarm(nil).with("message_id", strings.Repeat("0", 32)).json():      "forged",
		`{"type":"Notification"}`:                                            "malformed",
		`{"type":"HttpSubscriptionUserConfirm"}`:                             "ignored",
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
	s.checkTraps()
	s.checkSecrets()
	if n := s.gets[1].Load(); n != 1 || s.store.writes != 2 {
		t.Errorf("%d confirmations and %d writes, want 1 and 2", n, s.store.writes)
	}
}
