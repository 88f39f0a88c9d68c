// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"errors"
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

	"github.com/mcsps/rds-autopilot/autopilot"
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

// slowLookups is a store that takes 990 ms to look up a topic.
type slowLookups struct{ *fakeStore }

func (s slowLookups) ByTopicLive(ctx context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error) {
	select {
	case <-time.After(990 * time.Millisecond):
		return s.fakeStore.ByTopicLive(ctx, urn)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

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
	invented := func(i int) string {
		topic := fmt.Sprintf("urn:smn:eu-de:%s:autopilot_ns_%d_12345678", project, i)
		return signedBody(m{"topic_urn": topic, "signature": "AAAA"})
	}
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
			b.Keys = hangingKeys{b.keys}
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
		{"2,000 invented topics in two seconds", func(b *bench) {
			b.Store = slowLookups{b.store}
			var all sync.WaitGroup
			for i := range 2000 {
				all.Go(func() {
					b.send(&lateBody{time.Duration(i%100) * 20 * time.Millisecond, strings.NewReader(invented(i))})
				})
				time.Sleep(time.Millisecond)
			}
			all.Wait()
		}, resultLimited},
		{"a topic of a namespace that the API server refuses to read", func(b *bench) {
			b.store.down = &autopilot.RefusedError{}
			b.send(strings.NewReader(invented(1)))
		}, resultLimited},
		{"a topic that the API server cannot look up", func(b *bench) {
			b.store.down = errors.New("refused")
			b.send(strings.NewReader(invented(1)))
		}, resultUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				tc.send(b)
				for _, res := range []result{resultIncomplete, resultLimited, resultUnavailable} {
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
