// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Store is where autopilots are found and their signals are kept. Callers do not alter the objects it returns.
type Store interface {
	// ByTopic returns the autopilots with that topic, as far as the cache knows.
	ByTopic(urn string) []*v1alpha1.RdsAutopilot
	// ByTopicLive asks the API server for them.
	ByTopicLive(ctx context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error)
	// Expects reports whether the cache knows an autopilot that such a topic would be named after: its URN may just not
	// be in the cache yet.
	Expects(urn string) bool
	// SignedBefore reports whether a stored message was signed with that certificate, as far as the cache knows.
	SignedBefore(certURL string) bool
	// LiveAutopilot asks the API server for one. It returns autopilot.ErrGone where there is none.
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	// WriteIntake stores the intake and nothing else, on top of the version that was read. It returns
	// autopilot.ErrConflict where that has changed, autopilot.ErrGone where the object is gone.
	WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error
}

// Keys gets the keys that messages are signed with; see smn.Keys.
type Keys interface {
	// CheckURL returns smn.ErrForged unless SMN could have a signing certificate at that URL.
	CheckURL(certURL string) error
	// Key returns the public key of the certificate at that URL. The topic is the message's; signedBefore says that the
	// certificate has signed a message that was stored. The error is smn.ErrUnavailable if it cannot be fetched now.
	Key(ctx context.Context, certURL, topic string, signedBefore bool) (*rsa.PublicKey, error)
}

// Options are what a Receiver needs.
type Options struct {
	Path         string // of the public URL
	Store        Store
	Keys         Keys
	Confirm      *http.Client // for confirmation links; must not follow redirects
	ConfirmHosts []string     // host[:port], exact
	// OurTopics reports whether a URN could be one of ours by project, region and name.
	OurTopics     func(urn string) bool
	MaxMessageAge time.Duration
	// Warn emits a Warning event on the autopilot.
	Warn func(a *v1alpha1.RdsAutopilot, reason, note string)
	Log  *zap.Logger
	Reg  prometheus.Registerer
	Now  func() time.Time
}

// Receiver is the HTTP handler of the public address.
type Receiver struct {
	Options
	checks     []check
	meters     *meters
	slots      *semaphore.Weighted // messages being worked on
	large      *semaphore.Weighted // large bodies in memory
	confirming *semaphore.Weighted // confirmation links being called
	topics     lookups
	rules      lookups
	mux        *chi.Mux
	time       time.Duration // for all of an answer
}

// New returns a Receiver.
func New(o Options) *Receiver {
	r := &Receiver{
		Options:    o,
		checks:     checks(),
		meters:     newMeters(o.Reg),
		slots:      semaphore.NewWeighted(inFlight),
		large:      semaphore.NewWeighted(largeSlots),
		confirming: semaphore.NewWeighted(confirming),
		topics:     newLookups(),
		rules:      newLookups(),
		mux:        chi.NewMux(),
		time:       answerTime,
	}
	if r.Path == "" {
		r.Path = "/"
	}
	r.mux.Post(r.Path, r.post)
	return r
}

// ServeHTTP answers by the status contract: 404 for another path, 405 for another method.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// AnsweredLastHour is how many messages of a type were answered with a result in the last hour. Both are as in the labels of
// notifications_total.
func (r *Receiver) AnsweredLastHour(messageType, result string) int {
	return r.meters.lastHour.count(reply{messageType, result}, r.Now())
}

// Server returns an HTTP server for the receiver, with its limits.
func (r *Receiver) Server() *http.Server {
	s := &http.Server{
		Handler: r, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: zap.NewStdLog(r.Log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	}
	newConnLimiter(connections).attach(s)
	return s
}

// TopicPrefix returns an Options.OurTopics for URNs of that project, region and prefix of names.
func TopicPrefix(region, project, prefix string) func(urn string) bool {
	want := "urn:smn:" + region + ":" + project + ":" + prefix
	return func(urn string) bool { return strings.HasPrefix(urn, want) }
}
