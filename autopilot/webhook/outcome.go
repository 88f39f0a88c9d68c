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

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// result is what became of a message: the metric's label and the status that the sender sees.
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
	resultUnavailable result = "unavailable"
)

func results() []result {
	return []result{
		resultStored, resultDuplicate, resultStale, resultConfirmed, resultUnconfirmed, resultForeign, resultIgnored,
		resultUnreadable, resultMalformed, resultTooLarge, resultForged, resultExpired, resultUnavailable,
	}
}

// status is the contract with the sender: 5xx means "send again", anything else is final.
func (r result) status() int {
	switch r {
	case resultMalformed:
		return http.StatusBadRequest
	case resultTooLarge:
		return http.StatusRequestEntityTooLarge
	case resultForged, resultExpired:
		return http.StatusForbidden
	case resultUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// outcome is what is known of a message when it is answered.
type outcome struct {
	typ    smn.Type
	id     string // the message's
	target *v1alpha1.RdsAutopilot
	result result
	err    error // nil if there is nothing to explain
}

// answer writes the response.
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
	_, _ = io.WriteString(w, text)            // it fails if the sender is gone
	_ = http.NewResponseController(w).Flush() // what follows may take its time, a slow reader of the log above all
}

// log writes the one log line of a message. Of what a stranger sent it holds only the type and a checked id.
func (o outcome) log(log *zap.Logger) {
	fields := append(make([]zap.Field, 0, 7), zap.String("type", string(o.typ)), zap.String("result", string(o.result)), zap.Int("status", o.result.status()))
	if o.id != "" {
		fields = append(fields, zap.String("messageID", o.id))
	}
	if o.target != nil {
		fields = append(fields, zap.String("namespace", o.target.Namespace), zap.String("name", o.target.Name))
	}
	if o.err != nil {
		text := o.err.Error()
		fields = append(fields, zap.String("error", text[:min(len(text), maxErrorText)]))
	}
	switch o.result {
	case resultStored, resultDuplicate, resultStale, resultConfirmed:
		log.Info("notification", fields...)
	default:
		log.Warn("notification", fields...)
	}
}

type meters struct {
	notifications *prometheus.CounterVec
	duration      prometheus.Histogram
	panics        prometheus.Counter
	lastHour      hour[reply]
}

// reply is a type of message, as the metrics have it, and what became of it.
type reply struct{ messageType, result string }

// typeOther is the label of every type that is not known: labels come from closed sets.
const typeOther = "other"

func newMeters(reg prometheus.Registerer) *meters {
	m := &meters{
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rds_autopilot_notifications_total",
			Help: "Messages received from SMN, by type and by what became of them.",
		}, []string{"type", "result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rds_autopilot_notification_duration_seconds",
			Help:    "Time from a message's arrival to its answer. SMN gives up after 5 seconds.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 3, 4, 5},
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rds_autopilot_receiver_panics_total",
			Help: "Panics while a message was worked on; each was answered 503.",
		}),
	}
	for _, t := range []string{string(smn.TypeNotification), string(smn.TypeConfirmation), string(smn.TypeUnsubscribed), typeOther} {
		for _, r := range results() {
			m.notifications.WithLabelValues(t, string(r))
		}
	}
	reg.MustRegister(m.notifications, m.duration, m.panics)
	return m
}

func (m *meters) count(t smn.Type, r result, took time.Duration, now time.Time) {
	label := string(t)
	if !t.Known() {
		label = typeOther
	}
	m.notifications.WithLabelValues(label, string(r)).Inc()
	m.lastHour.add(reply{label, string(r)}, now)
	m.duration.Observe(took.Seconds())
}
