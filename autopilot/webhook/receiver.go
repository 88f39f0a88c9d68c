// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"crypto/rsa"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/semaphore"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Store finds autopilots and stores their signals. Callers do not modify the objects that it returns.
type Store interface {
	// Topic returns the topic of the installation. It is empty while this replica does not know it.
	Topic() v1alpha1.Topic
	// ByRule returns the autopilots in the cache that have recorded the alarm rule.
	ByRule(alarmID string) []*v1alpha1.RdsAutopilot
	// SignedBefore reports whether the cache has stored messages that were signed with that certificate, and with any.
	SignedBefore(certURL string) (that, some bool)
	// LiveAutopilot returns an autopilot from the API server. It returns autopilot.ErrGone if it does not exist.
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	// WriteIntake stores the intake and nothing else. It returns autopilot.ErrConflict if the object has changed since it
	// was read, and autopilot.ErrGone if it does not exist.
	WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error
}

// Keys returns the keys that sign messages; see smn.Keys.
type Keys interface {
	// CheckURL returns smn.ErrForged unless the URL has the form of SMN's certificate URLs on a configured host.
	CheckURL(certURL string) error
	// Key returns the public key of the certificate at that URL. signedBefore reports that the certificate has signed a
	// stored message. The error is smn.ErrUnavailable if it cannot be fetched now, and also smn.ErrUnknownURL if the sender
	// is the likely cause.
	Key(ctx context.Context, certURL string, signedBefore bool) (*rsa.PublicKey, error)
}

// Options configure a Receiver.
type Options struct {
	Path         string // of the public URL, without escapes
	Store        Store
	Keys         Keys
	Confirm      *http.Client // for confirmation links; must not follow redirects
	ConfirmHosts []string     // host[:port], exact
	TopicName    string       // of the topic of the installation
	// RuleOwner returns the namespace and name in the name of a rule; false if it is not the name of a rule of ours.
	RuleOwner     func(ruleName string) (namespace, name string, ok bool)
	MaxMessageAge time.Duration
	// Warn emits a Warning event on the topic of the installation.
	Warn func(reason, note string)
	Log  *zap.Logger
	Reg  prometheus.Registerer
	Now  func() time.Time
}

// Receiver is the HTTP handler of the public address.
type Receiver struct {
	Options
	checks  []check
	meters  *meters
	sampled *zap.Logger         // for messages that were not stored
	large   *semaphore.Weighted // large bodies in memory
	mux     *chi.Mux
	time    time.Duration // for the whole answer
}

// New returns a Receiver.
func New(o Options) *Receiver {
	r := &Receiver{
		Options: o,
		checks:  checks(),
		meters:  newMeters(o.Reg),
		sampled: o.Log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(c, time.Second, linesPerSecond, 0)
		})),
		large: semaphore.NewWeighted(largeSlots),
		mux:   chi.NewMux(),
		time:  answerTime,
	}
	r.Path = cmp.Or(r.Path, "/")
	r.mux.Post("/*", r.post) // a path of the user in its place would be read as a pattern
	return r
}

// ServeHTTP answers a message. It answers 404 for another path and 405 for another method.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if path := cmp.Or(req.URL.Path, "/"); path != r.Path {
		http.NotFound(w, req)
		return
	}
	r.mux.ServeHTTP(w, req)
}

// Server returns an HTTP server for the receiver, with its limits of time. The caller limits the listener to Connections.
// The server closes each connection after its answer: an idle one would count against that limit, and one that is
// closed later could be closed just as its sender uses it again.
func (r *Receiver) Server() *http.Server {
	s := &http.Server{
		Handler: r, ReadTimeout: readTime, WriteTimeout: writeTime, MaxHeaderBytes: maxHeader,
		ErrorLog: zap.NewStdLog(r.Log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	}
	s.SetKeepAlivesEnabled(false)
	return s
}
