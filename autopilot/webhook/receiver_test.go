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
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

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

func TestUnreadableAlarmAndRefusedLinkCauseWarnings(t *testing.T) {
	b := newBench(t)
	b.post(signedBody(m{"message": "hello"}))
	b.post(signedBody(m{"type": "SubscriptionConfirmation", "subject": "<none>",
		"subscribe_url": "https://evil.example/"}))
	if len(b.warnings) != 2 || b.warnings[0] != reasonUnreadable || b.warnings[1] != reasonConfirm {
		t.Errorf("warnings %v", b.warnings)
	}
}

// FuzzAlarm in autopilot/smn has the other invalid values.
func TestSignalHasTheFieldsOfTheAlarmAndNoInvalidValue(t *testing.T) {
	at, measured := metav1.NewMicroTime(noon()), metav1.NewMicroTime(noon().Add(-time.Minute))
	want := v1alpha1.Signal{
		Metric: v1alpha1.MetricStorage, AlarmID: ruleID, State: v1alpha1.StateAlarm, AlarmTime: at, ReceivedTime: at,
		MessageID: "d84bd6629ef04513ad2e37bffd6e17cb", ValuePercent: "93.1", DatapointTime: &measured,
	}
	without := want
	without.ValuePercent, without.DatapointTime = "", nil
	future := strconv.FormatInt(noon().Add(time.Hour).UnixMilli(), 10)
	for name, tc := range map[string]struct {
		value string
		want  v1alpha1.Signal
	}{
		"a valid value":           {`93.1`, want},
		"text":                    {`"93.1"`, without},
		"datapoint in the future": {`93.1},{"time":` + future + `,"value":1`, without},
	} {
		b := newBench(t)
		text := alarm("alarm", ruleID, "rds039_disk_util", instance, noon())
		w := b.post(signedBody(m{"message": strings.Replace(text, "93.1", tc.value, 1)}))
		stored := v1alpha1.Intake{SigningCertURL: "https://smn.example/smn/x.pem", Signals: []v1alpha1.Signal{tc.want}}
		if diff := cmp.Diff(stored, b.store.stored.Status.Intake); w.Code != http.StatusOK || diff != "" {
			t.Errorf("%s: status %d, stored (-want +got):\n%s", name, w.Code, diff)
		}
	}
}

func TestLogHasEveryStoredMessageAndFiveLinesPerSecondOfOtherResults(t *testing.T) {
	stored := func(i int) string {
		at := noon().Add(time.Duration(i) * time.Second)
		return signedBody(m{"message_id": fmt.Sprintf("%032x", i),
			"message": alarm("alarm", ruleID, "rds039_disk_util", instance, at)})
	}
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		o := newBench(t).Options
		o.Log, o.Reg = zap.New(core), prometheus.NewRegistry()
		b := &bench{Receiver: New(o)}
		lines := func(res result) int { return logs.FilterField(zap.String("result", string(res))).Len() }
		for i := range 100 {
			b.post(stored(i))
			b.post(stored(i))
			b.post("hello")
			b.post(signedBody(m{"signature": "c2ln"}))
		}
		for _, res := range []result{resultDuplicate, resultMalformed, resultForged} {
			if n := lines(res); n != linesPerSecond {
				t.Errorf("%s: %d lines, want %d", res, n, linesPerSecond)
			}
		}
		if n := lines(resultStored); n != 100 {
			t.Errorf("%d lines of 100 stored messages", n)
		}
		time.Sleep(time.Second)
		if b.post("hello"); lines(resultMalformed) != linesPerSecond+1 {
			t.Error("a second later, a message has no line")
		}
	})
}

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
