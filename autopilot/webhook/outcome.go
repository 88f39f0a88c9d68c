// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// result is the outcome of a message. It is a label of the metric, and it decides the status code.
type result string

const (
	resultStored      result = "stored"
	resultDuplicate   result = "duplicate"
	resultStale       result = "stale"
	resultConfirmed   result = "confirmed"
	resultUnconfirmed result = "unconfirmed"
	resultForeign     result = "foreign"
	resultIgnored     result = "ignored"
	resultUnreadable  result = "unreadable"
	resultMalformed   result = "malformed"
	resultTooLarge    result = "too_large"
	resultForged      result = "forged"
	resultExpired     result = "expired"
	// The last two are answered 503. A stranger can cause the first alone: a body that does not end, one large body too
	// many, a topic that only its name makes ours, a certificate URL of no stored message. The second is our failure or the
	// cloud's.
	resultIncomplete  result = "incomplete"
	resultUnavailable result = "unavailable"
)

func results() []result {
	return []result{
		resultStored, resultDuplicate, resultStale, resultConfirmed, resultUnconfirmed, resultForeign, resultIgnored,
		resultUnreadable, resultMalformed, resultTooLarge, resultForged, resultExpired, resultIncomplete,
		resultUnavailable,
	}
}

// status returns the status code for the sender. SMN repeats a message after 5xx only.
func (r result) status() int {
	switch r {
	case resultMalformed:
		return http.StatusBadRequest
	case resultTooLarge:
		return http.StatusRequestEntityTooLarge
	case resultForged, resultExpired:
		return http.StatusForbidden
	case resultIncomplete, resultUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// isAccepted reports whether the message is authentic and ours, and was stored or needs no storing.
func (r result) isAccepted() bool {
	return r == resultStored || r == resultDuplicate || r == resultStale || r == resultConfirmed
}

type outcome struct {
	typ    smn.Type
	id     string // the message's
	target *v1alpha1.RdsAutopilot
	result result
	check  string // the name of the check that the message failed; empty if it passed all
	err    error  // nil if the result explains itself
}

func (o outcome) answer(w http.ResponseWriter) {
	status := o.result.status()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter+rand.IntN(retryAfter+1)))
	}
	text := string(o.result) + "\n"
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)            // it fails if the sender has disconnected
	_ = http.NewResponseController(w).Flush() // the log may block after this
}

// log writes the log line of a message. That of a refused one names the failed check and the reason. Of the fields that
// the sender chose it has only the type and a checked id. The sampler counts lines by their text, which has the result.
func (o outcome) log(log *zap.Logger) {
	fields := []zap.Field{
		zap.String("type", string(o.typ)), zap.String("result", string(o.result)), zap.Int("status", o.result.status()),
	}
	if o.id != "" {
		fields = append(fields, zap.String("messageID", o.id))
	}
	if o.target != nil {
		fields = append(fields, zap.String("namespace", o.target.Namespace), zap.String("name", o.target.Name))
	}
	if o.check != "" {
		fields = append(fields, zap.String("check", o.check))
	}
	if o.err != nil {
		fields = append(fields, zap.String("error", shorten.Foreign(o.err.Error())))
	}
	level := zapcore.WarnLevel
	if o.result.isAccepted() {
		level = zapcore.InfoLevel
	}
	log.Log(level, "notification "+string(o.result), fields...)
}

type meters struct {
	notifications *prometheus.CounterVec
	duration      prometheus.Histogram
}

// typeOther is the label of every unknown type, because senders must not be able to add labels.
const typeOther = "other"

func newMeters(reg prometheus.Registerer) *meters {
	m := &meters{
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rds_autopilot_notifications_total",
			Help: "Messages received from SMN, by type and result.",
		}, []string{"type", "result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rds_autopilot_notification_duration_seconds",
			Help:    "Time from a message's arrival to its answer. SMN gives up after 5 seconds.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 3, 4, 5},
		}),
	}
	for _, t := range []smn.Type{smn.TypeNotification, smn.TypeConfirmation, smn.TypeUnsubscribed, typeOther} {
		for _, r := range results() {
			m.notifications.WithLabelValues(string(t), string(r))
		}
	}
	reg.MustRegister(m.notifications, m.duration)
	return m
}

func (m *meters) count(t smn.Type, r result, took time.Duration) {
	label := string(t)
	if !t.Known() {
		label = typeOther
	}
	m.notifications.WithLabelValues(label, string(r)).Inc()
	m.duration.Observe(took.Seconds())
}
