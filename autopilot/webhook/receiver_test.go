// SPDX-License-Identifier: Apache-2.0

package webhook

import (
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
		{"/smn", http.MethodPost, "/smn", 400},
		{"/a b", http.MethodPost, "/a%20b", 400},
		{"/{x}", http.MethodPost, "/%7Bx%7D", 400},
		{"/{x}", http.MethodPost, "/y", 404},
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

// The result unavailable pages on-call, so a sender must not be able to cause it.
func TestUnavailableIsNeverCausedByTheSender(t *testing.T) {
	fails := func(err error) io.Reader { return io.MultiReader(strings.NewReader(`{"type"`), iotest.ErrReader(err)) }
	alarm := signedBody(nil)
	for name, tc := range map[string]struct {
		body   io.Reader
		change func(*fakeStore, *fakeKeys)
		want   result
	}{
		"the connection ends within the body": {body: fails(io.ErrUnexpectedEOF), want: resultIncomplete},
		"the body is not complete within the time of reading": {
			body: fails(os.ErrDeadlineExceeded), want: resultIncomplete,
		},
		"the body leaves no time for the API server": {
			&lateBody{readTime - time.Millisecond, strings.NewReader(alarm)},
			func(s *fakeStore, _ *fakeKeys) { s.hangs = true }, resultIncomplete,
		},
		"there is no certificate at an invented URL": {
			strings.NewReader(alarm),
			func(_ *fakeStore, k *fakeKeys) { k.err = fmt.Errorf("%w: %w", smn.ErrUnavailable, smn.ErrUnknownURL) },
			resultIncomplete,
		},
		"the API server hangs": {
			strings.NewReader(alarm), func(s *fakeStore, _ *fakeKeys) { s.hangs = true }, resultUnavailable,
		},
		"the certificate host hangs": {
			strings.NewReader(alarm), func(_ *fakeStore, k *fakeKeys) { k.hangs = true }, resultUnavailable,
		},
		"every write conflicts": {
			strings.NewReader(alarm),
			func(s *fakeStore, _ *fakeKeys) { s.conflict, s.takes = 1<<30, 100*time.Millisecond }, resultUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, keys := newBench(t), fakeKeys{}
				if tc.change != nil {
					tc.change(b.store, &keys)
				}
				b.Keys = keys
				w, start := httptest.NewRecorder(), time.Now()
				b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", tc.body))
				got, took := strings.TrimSpace(w.Body.String()), time.Since(start)
				if w.Code != 503 || got != string(tc.want) || w.Header().Get("Retry-After") == "" || took > 4*time.Second {
					t.Errorf("answered %d %s after %s with %v, want %s", w.Code, got, took, w.Header(), tc.want)
				}
			})
		})
	}
}

func TestAddSignalKeepsTheNewestOfEachMetric(t *testing.T) {
	now := metav1.NowMicro()
	sig := func(id string, age time.Duration) v1alpha1.Signal {
		return v1alpha1.Signal{Metric: v1alpha1.MetricCPU, MessageID: id, AlarmTime: metav1.NewMicroTime(now.Add(-age))}
	}
	in, first := addSignal(v1alpha1.Intake{}, sig("a", time.Minute))
	for _, tc := range []struct {
		name string
		sig  v1alpha1.Signal
		want result
	}{
		{"the same message", sig("a", time.Minute), resultDuplicate},
		{"an older alarm", sig("b", 2*time.Minute), resultStale},
		{"the same alarm under a fresh id", sig("c", time.Minute), resultStale},
		{"a newer alarm", sig("d", 0), resultStored},
		{"another metric", v1alpha1.Signal{Metric: v1alpha1.MetricStorage, MessageID: "e"}, resultStored},
	} {
		if _, got := addSignal(in, tc.sig); got != tc.want || first != resultStored {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if len(in.Signals) != 1 || in.Signals[0].MessageID != "a" {
		t.Errorf("the intake that was passed was altered: %+v", in)
	}
}
