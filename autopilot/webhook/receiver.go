package webhook

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Book is where autopilots are found and signals are kept. Objects it returns are not altered.
type Book interface {
	// ByTopic returns the autopilots with that topic, as far as the cache knows.
	ByTopic(urn string) []*v1alpha1.RdsAutopilot
	// ByTopicLive asks the API server for them.
	ByTopicLive(ctx context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error)
	// Live asks the API server for one. It returns autopilot.ErrGone where there is none.
	Live(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	// WriteIntake stores the intake and nothing else, on top of the version that was read. It returns
	// autopilot.ErrConflict where that has changed, autopilot.ErrGone where the object is gone.
	WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error
}

// Verifier tells an authentic envelope from a forged one. Errors are smn.ErrForged or smn.ErrUnavailable.
type Verifier interface {
	Verify(ctx context.Context, e smn.Envelope) error
}

// Options are what a Receiver needs.
type Options struct {
	Path         string // of the public URL
	Book         Book
	Verifier     Verifier
	Confirm      *http.Client // for confirmation links; must not follow redirects
	ConfirmHosts []string     // host[:port], exact
	// OurTopics reports whether a URN could be one of ours by project, region and name.
	OurTopics     func(urn string) bool
	MaxMessageAge time.Duration
	// Warn tells the people who look after a database.
	Warn func(a *v1alpha1.RdsAutopilot, reason, note string)
	Log  *zap.Logger
	Reg  prometheus.Registerer
	Now  func() time.Time
}

// Receiver is the HTTP handler of the public address.
type Receiver struct {
	Options
	parser     *smn.Parser
	meters     *meters
	slots      *semaphore.Weighted
	confirming *semaphore.Weighted
	live       *rate.Limiter
	mux        *chi.Mux
}

// New returns a Receiver.
func New(o Options) *Receiver {
	r := &Receiver{
		Options:    o,
		parser:     smn.NewParser(),
		meters:     newMeters(o.Reg),
		slots:      semaphore.NewWeighted(inFlight),
		confirming: semaphore.NewWeighted(confirming),
		live:       rate.NewLimiter(liveLookups, liveLookBurst),
		mux:        chi.NewMux(),
	}
	if r.Path == "" {
		r.Path = "/"
	}
	r.mux.Post(r.Path, r.post)
	return r
}

// ServeHTTP answers by the status contract: 404 for another path, 405 for another method.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// Server returns an HTTP server for the receiver, with its limits.
func (r *Receiver) Server() *http.Server {
	s := &http.Server{
		Handler: r, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: zap.NewStdLog(r.Log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	}
	newCrowd(connections).of(s)
	return s
}

// finding is what is known of a message by the time it is answered.
type finding struct {
	typ    smn.Type
	id     string // the message's
	target *v1alpha1.RdsAutopilot
	result result
	why    error // nil where there is nothing to explain
}

func (r *Receiver) post(w http.ResponseWriter, req *http.Request) {
	start := r.Now()
	// The sender may hang up; what was begun is ended all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), answerTime)
	defer cancel()
	f := finding{result: resultUnavailable}
	defer func() {
		if p := recover(); p != nil {
			f.result = resultUnavailable
			r.Log.Error("panic while receiving", zap.Any("panic", p), zap.Stack("stack"))
		}
		r.answer(w, f)
		r.meters.count(f.typ, f.result, r.Now().Sub(start))
		r.say(f)
	}()
	wait, done := context.WithTimeout(ctx, inFlightWait)
	err := r.slots.Acquire(wait, 1)
	done()
	if err != nil {
		f.why = errors.New("too many requests at a time")
		return
	}
	defer r.slots.Release(1)
	body, res, err := read(w, req)
	if err != nil {
		f.result, f.why = res, err
		return
	}
	complete(req.Context())
	r.receive(ctx, body, &f)
}

// read reads the body within its limits.
func read(w http.ResponseWriter, req *http.Request) ([]byte, result, error) {
	// A recorder in a test has no deadline to set; net/http's writer always has.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, resultTooLarge, err
	case err != nil:
		return nil, resultUnavailable, err
	}
	return body, "", nil
}

func (r *Receiver) answer(w http.ResponseWriter, f finding) {
	status := f.result.status()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter+rand.IntN(retryAfter+1)))
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, string(f.result)+"\n") // the sender is gone where this fails
}

// say writes the one log line of a message. Of what a stranger sent only the type and a checked id are in it.
func (r *Receiver) say(f finding) {
	fields := []zap.Field{zap.String("type", string(f.typ)), zap.String("result", string(f.result)), zap.Int("status", f.result.status())}
	if f.id != "" {
		fields = append(fields, zap.String("messageID", f.id))
	}
	if f.target != nil {
		fields = append(fields, zap.String("namespace", f.target.Namespace), zap.String("name", f.target.Name))
	}
	if f.why != nil {
		fields = append(fields, zap.Error(f.why))
	}
	switch f.result {
	case resultStored, resultDuplicate, resultStale, resultConfirmed:
		r.Log.Info("notification", fields...)
	default:
		r.Log.Warn("notification", fields...)
	}
}
