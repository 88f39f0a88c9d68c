// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// lateBody is a body that arrives after a delay.
type lateBody struct {
	after time.Duration
	io.Reader
}

func (b *lateBody) Read(p []byte) (int, error) {
	time.Sleep(b.after)
	b.after = 0
	return b.Reader.Read(p)
}

// hangingKeys and hangingStore return only when the context ends.
type (
	hangingKeys  struct{ fakeKeys }
	hangingStore struct{ *fakeStore }
)

func (hangingKeys) Key(ctx context.Context, _ string, _ bool) (*rsa.PublicKey, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hangingStore) WriteIntake(ctx context.Context, _ *v1alpha1.RdsAutopilot, _ v1alpha1.Intake) error {
	<-ctx.Done()
	return ctx.Err()
}

// slowWrites is a store that takes 100 ms for each write.
type slowWrites struct{ *fakeStore }

func (s slowWrites) WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	time.Sleep(100 * time.Millisecond)
	return s.fakeStore.WriteIntake(ctx, read, in)
}

// counted returns how many messages had that result.
func (b *bench) counted(res result) (n int) {
	for _, typ := range []string{"Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation", typeOther} {
		n += int(testutil.ToFloat64(b.meters.notifications.WithLabelValues(typ, string(res))))
	}
	return n
}

// send posts a body. It counts an answer that takes more than 4 seconds, or has the wrong header Retry-After.
func (b *bench) send(body io.Reader) {
	w, start := httptest.NewRecorder(), time.Now()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", body))
	isUnavailable := w.Code == http.StatusServiceUnavailable
	if time.Since(start) > 4*time.Second || isUnavailable != (w.Header().Get("Retry-After") != "") {
		b.badAnswers.Add(1)
	}
}

// The result unavailable pages on-call, so a sender must not be able to cause it.
func TestUnavailableIsNeverCausedByTheSender(t *testing.T) {
	for _, tc := range []struct {
		name string
		send func(*bench)
		want result
	}{
		{"the connection ends within the body", func(b *bench) {
			b.send(io.MultiReader(strings.NewReader(`{"type"`), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}, resultIncomplete},
		{"the body is not complete within the time of reading", func(b *bench) {
			b.send(io.MultiReader(strings.NewReader(`{"type"`), iotest.ErrReader(os.ErrDeadlineExceeded)))
		}, resultIncomplete},
		{"the body leaves no time for the API server", func(b *bench) {
			b.Store = hangingStore{b.store}
			b.send(&lateBody{readTime - time.Millisecond, strings.NewReader(signedBody(nil))})
		}, resultIncomplete},
		{"the API server hangs", func(b *bench) {
			b.Store = hangingStore{b.store}
			b.send(strings.NewReader(signedBody(nil)))
		}, resultUnavailable},
		{"the certificate host hangs", func(b *bench) {
			b.Keys = hangingKeys{}
			b.send(strings.NewReader(signedBody(nil)))
		}, resultUnavailable},
		{"every write conflicts", func(b *bench) {
			b.store.conflict = 1 << 30
			b.Store = slowWrites{b.store}
			b.send(strings.NewReader(signedBody(nil)))
		}, resultUnavailable},
		{"the API server hangs for a message that took a second", func(b *bench) {
			b.Store = hangingStore{b.store}
			b.send(&lateBody{time.Second, strings.NewReader(signedBody(nil))})
		}, resultUnavailable},
		{"there is no certificate at an invented URL", func(b *bench) {
			b.Keys = fakeKeys{fmt.Errorf("%w: %w", smn.ErrUnavailable, smn.ErrUnknownURL)}
			b.send(strings.NewReader(signedBody(nil)))
		}, resultIncomplete},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				tc.send(b)
				for _, res := range []result{resultIncomplete, resultUnavailable} {
					if n := b.counted(res); (n > 0) != (res == tc.want) {
						t.Errorf("%d messages are %s, want only %s", n, res, tc.want)
					}
				}
				if n := b.badAnswers.Load(); n > 0 {
					t.Errorf("%d answers took more than 4 s, or lack Retry-After", n)
				}
			})
		})
	}
}

// Anyone can post. The only request that 10,000 messages without a valid signature cause is that for the certificate.
func TestUnsignedMessagesCauseNoCallWhileHonestOnesAreStored(t *testing.T) {
	for name, tc := range map[string]struct {
		lacksTopic         bool
		ours, ofName       result
		stored, certFetchs int
	}{
		"the topic is known":     {false, resultForged, resultForeign, 10, 1},
		"the topic is not known": {true, resultIncomplete, resultIncomplete, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			s.store.lacksTopic = tc.lacksTopic
			post := func(body string) result {
				w := httptest.NewRecorder()
				s.receiver.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/smn", strings.NewReader(body)))
				return result(strings.TrimSpace(w.Body.String()))
			}
			var strangers sync.WaitGroup
			for topic, want := range map[string]result{
				ourTopic: tc.ours, theirTopic: resultForeign, "urn:smn:eu-nl:" + project + ":" + topicName: tc.ofName,
			} {
				body := s.alarm(nil).with("topic_urn", topic).with("signature", "AAAA").json()
				strangers.Go(func() {
					for range 10_000 {
						if got := post(body); got != want {
							t.Errorf("%s: %s, want %s", topic, got, want)
							return
						}
					}
				})
			}
			for i := range tc.stored {
				if got := post(event(s, i, "alarm", noon().Add(time.Duration(i)*time.Second))); got != resultStored {
					t.Errorf("an honest message is %s", got)
				}
			}
			strangers.Wait()
			if s.store.calls != tc.stored || s.store.writes != tc.stored || int(s.cert.requests.Load()) != tc.certFetchs ||
				s.console.requests.Load() != 0 {
				t.Errorf("%d calls of the API server, %d writes, %s", s.store.calls, s.store.writes, s.outbound())
			}
			s.store.lacksTopic = false
			if got := post(event(s, 99, "ok", noon().Add(time.Minute))); got != resultStored {
				t.Errorf("afterwards, an honest message is %s", got)
			}
		})
	}
}
