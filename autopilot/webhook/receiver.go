package webhook

import (
	"context"
	"errors"
	"fmt"
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

// Verifier tells an authentic envelope from a forged one; known says that its certificate has signed for us before.
// Errors are smn.ErrForged or smn.ErrUnavailable.
type Verifier interface {
	Verify(ctx context.Context, e smn.Envelope, known bool) error
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
	meters     *meters
	slots      *semaphore.Weighted
	large      *semaphore.Weighted
	confirming *semaphore.Weighted
	topics     looks
	rules      looks
	mux        *chi.Mux
	time       time.Duration // for all of an answer
}

// New returns a Receiver.
func New(o Options) *Receiver {
	r := &Receiver{
		Options:    o,
		meters:     newMeters(o.Reg),
		slots:      semaphore.NewWeighted(inFlight),
		large:      semaphore.NewWeighted(largeSlots),
		confirming: semaphore.NewWeighted(confirming),
		topics:     newLooks(),
		rules:      newLooks(),
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

// Server returns an HTTP server for the receiver, with its limits.
func (r *Receiver) Server() *http.Server {
	s := &http.Server{
		Handler: r, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), r.time)
	defer cancel()
	f := r.handle(ctx, w, req)
	r.answer(w, f)
	r.meters.count(f.typ, f.result, r.Now().Sub(start))
	r.say(f)
}

// handle reads a message and works on it for as long as the sender waits. Work that does not mind its context goes on
// behind the answer and keeps its slot, so there is never more of it than slots.
func (r *Receiver) handle(ctx context.Context, w http.ResponseWriter, req *http.Request) finding {
	body, free, f := r.read(ctx, w, req)
	if f.result != "" {
		return f
	}
	complete(req.Context())
	if !acquire(ctx, r.slots) {
		free()
		return finding{result: resultUnavailable, why: errors.New("too many messages at a time")}
	}
	found := make(chan finding, 1)
	go func() {
		defer free()
		defer r.slots.Release(1)
		found <- r.guarded(ctx, body)
	}()
	select {
	case f = <-found:
		return f
	case <-ctx.Done():
	}
	late := time.NewTimer(graceTime)
	defer late.Stop()
	select {
	case f = <-found:
		return f
	case <-late.C:
		return finding{result: resultUnavailable, why: errors.New("the work was not done in time")}
	}
}

// guarded keeps a panic from ending the process: it is counted, and the message may come again.
func (r *Receiver) guarded(ctx context.Context, body []byte) (f finding) {
	defer func() {
		if p := recover(); p != nil {
			r.meters.panics.Inc()
			f.result, f.why = resultUnavailable, fmt.Errorf("panic: %T", p) // its text may be the sender's
			r.Log.Error("panic while receiving", zap.Error(f.why), zap.Stack("stack"))
		}
	}()
	r.receive(ctx, body, &f)
	return f
}

// acquire waits a moment for one of a bounded number, if none is free.
func acquire(ctx context.Context, s *semaphore.Weighted) bool {
	if s.TryAcquire(1) {
		return true
	}
	wait, done := context.WithTimeout(ctx, slotWait)
	defer done()
	return s.Acquire(wait, 1) == nil
}

// looks bound how often the API server is asked for what the cache lacks, and how many messages wait for that.
type looks struct {
	places *semaphore.Weighted
	rate   *rate.Limiter
}

func newLooks() looks {
	return looks{semaphore.NewWeighted(looking), rate.NewLimiter(looksPerSec, looksPerSec)}
}

// begin waits for its turn; end gives the place back.
func (l looks) begin(ctx context.Context) (end func(), err error) {
	if !l.places.TryAcquire(1) {
		return nil, errors.New("too many at a time")
	}
	end = func() { l.places.Release(1) }
	if err := l.rate.Wait(ctx); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// read reads the body within its limits. What it holds is given back by free. A finding with a result is final.
func (r *Receiver) read(ctx context.Context, w http.ResponseWriter, req *http.Request) (body []byte, free func(), f finding) {
	free = func() {}
	limited := http.MaxBytesReader(w, req.Body, MaxBody)
	if req.ContentLength > MaxBody {
		_, _ = io.Copy(io.Discard, limited) // who is answered while sending may see a cut connection instead
		return nil, free, finding{result: resultTooLarge, why: errors.New("it says so itself")}
	}
	body, err := io.ReadAll(io.LimitReader(limited, smallBody))
	if err == nil && len(body) == smallBody {
		sendsLarge(req.Context(), largeSlots)
		if !acquire(ctx, r.large) {
			_, _ = io.Copy(io.Discard, limited)
			return nil, free, finding{result: resultUnavailable, why: errors.New("too many large messages at a time")}
		}
		free = func() { r.large.Release(1) }
		var rest []byte
		rest, err = io.ReadAll(limited)
		body = append(body, rest...)
	}
	if err == nil {
		return body, free, f
	}
	free()
	f = finding{result: resultUnavailable, why: fmt.Errorf("read the body: %w", err)}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		f.result = resultTooLarge
	}
	return nil, func() {}, f
}

func (r *Receiver) answer(w http.ResponseWriter, f finding) {
	status := f.result.status()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter+rand.IntN(retryAfter+1)))
	}
	text := string(f.result) + "\n"
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)            // the sender is gone where this fails
	_ = http.NewResponseController(w).Flush() // what follows may take its time, a log's reader above all
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
		why := f.why.Error()
		fields = append(fields, zap.String("error", why[:min(len(why), maxWhy)]))
	}
	switch f.result {
	case resultStored, resultDuplicate, resultStale, resultConfirmed:
		r.Log.Info("notification", fields...)
	default:
		r.Log.Warn("notification", fields...)
	}
}
