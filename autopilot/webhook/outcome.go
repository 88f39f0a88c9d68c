package webhook

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
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

type meters struct {
	notifications *prometheus.CounterVec
	duration      prometheus.Histogram
	panics        prometheus.Counter
}

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

func (m *meters) count(t smn.Type, r result, took time.Duration) {
	label := string(t)
	if !t.Known() {
		label = typeOther
	}
	m.notifications.WithLabelValues(label, string(r)).Inc()
	m.duration.Observe(took.Seconds())
}
