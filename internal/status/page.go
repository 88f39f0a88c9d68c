// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

//go:embed *.html status.css status.js icon.svg
var files embed.FS

const (
	// renderLimit is how long a request waits for the pages before it.
	renderLimit = 10 * time.Second

	// policy allows stylesheet, script, icon and requests of this server only. It forbids inline code, other hosts and
	// frames.
	policy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// Cache holds the last seen objects of the watched namespaces. The page does not modify the objects that it returns.
type Cache interface {
	HasSynced() bool
	EachAutopilot(f func(*v1alpha1.RdsAutopilot))
	EachTarget(f func(*autopilot.Target))
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	Target(namespace, name string) *autopilot.Target
}

// Options configure the page.
type Options struct {
	Cache   Cache
	Metrics prometheus.Gatherer
	Leader  func() string // returns the pod that leads, as last seen; empty if unknown

	// Past returns the averages per period since a time. Only this calls the cloud, when a person opens a database. It
	// may be nil; then the page lacks that part.
	Past func(ctx context.Context, namespace, name string, period time.Duration, since time.Time) (autopilot.Past, error)

	CloudErrors func() []CloudError // returns the last error of each service; may be nil

	Mode           v1alpha1.Mode // upper bound for every database
	Sweep, Recheck time.Duration // time to the next check of a database, normally and during a change
	Version        string
	Scope          func() Scope // may be nil
	// Documents is the address of this version's documents, with a slash at its end. If it is empty, no reason links to
	// its section.
	Documents string
	Log       *zap.Logger
	Now       func() time.Time
}

// Scope names what the service looks after. A field is empty if it is unknown.
type Scope struct {
	Cluster string // uid of the namespace kube-system
	Region  string
	Project string // its name or its id
}

type pages struct {
	Options
	overview, database, health, failure *template.Template
	pasts                               *answers[pasts]
	// slot is held while rendering. One page at a time leaves the processor to decisions.
	slot chan struct{}
}

// New returns the handler of the status page: the overview at /, each database below /databases, and the health at
// /health.
func New(o Options) (http.Handler, error) {
	p := &pages{Options: o, slot: make(chan struct{}, 1)}
	p.pasts = newAnswers(o, p.askPasts, o.Sweep)
	for file, t := range map[string]**template.Template{
		"overview.html": &p.overview, "database.html": &p.database, "health.html": &p.health,
		"failure.html": &p.failure,
	} {
		var err error
		if *t, err = template.ParseFS(files, "layout.html", file); err != nil {
			return nil, fmt.Errorf("read the template of the status page: %w", err)
		}
	}
	mux := chi.NewMux()
	mux.Use(setHeaders)
	mux.Get("/", p.serve(p.showOverview))
	mux.Get("/databases/{namespace}/{name}", p.serveDatabase)
	mux.Get("/health", p.serve(p.showHealth))
	for _, file := range []string{"status.css", "status.js", "icon.svg"} {
		mux.Get("/"+file, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, file) })
	}
	return mux, nil
}

func setHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// page is the input of the layout.
type page struct {
	Root    string // relative path to the overview, because a proxy may serve the page below another path
	Title   string
	Now     moment
	Version string
	Synced  bool
	Scope   Scope
	Replica replica
	Follows bool // whether the script refreshes the page
	Content any
}

// answer is a page before rendering.
type answer struct {
	status   int
	template *template.Template
	root     string
	title    string
	content  any
}

// serve renders a page into memory before it sends it. So a slow reader does not block others, and an error does not
// leave half a page.
func (p *pages) serve(show func(*http.Request, *view) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(renderLimit)
		defer timer.Stop()
		select {
		case p.slot <- struct{}{}:
		case <-timer.C:
			http.Error(w, "the status page is busy with other requests; try again", http.StatusServiceUnavailable)
			return
		case <-r.Context().Done():
			return
		}
		status, body, err := p.render(r, show)
		if err != nil {
			p.Log.Error("render the status page", zap.Error(err))
			http.Error(w, "the status page could not be rendered; the reason is in the log", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(body) //nolint:gosec // the template has escaped it; an error means that the client has gone
	}
}

// render returns a page, or an error if it panics, and frees the slot.
func (p *pages) render(r *http.Request, show func(*http.Request, *view) answer) (status int, body []byte, err error) {
	defer func() { <-p.slot }()
	defer recovered(p.Log, &err)
	v := &view{now: p.Now(), mode: p.Mode, sweep: p.Sweep, recheck: p.Recheck, samples: gather(p.Metrics),
		leader: p.Leader(), documents: p.Documents}
	a := show(r, v)
	var out bytes.Buffer
	var scope Scope
	if p.Scope != nil {
		scope = p.Scope()
	}
	err = a.template.ExecuteTemplate(&out, "layout.html", page{
		Root: a.root, Title: a.title, Now: v.moment(v.now), Version: p.Version, Synced: p.Cache.HasSynced(),
		Scope: scope, Replica: v.replica(), Follows: a.template != p.failure, Content: a.content,
	})
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", a.title, err)
	}
	return a.status, visible(out.Bytes()), nil
}

// databases returns the watched databases: those with an RdsAutopilot, with an Rds, or with both.
func (p *pages) databases(v *view) []database {
	type key struct{ namespace, name string }
	index := map[key]int{}
	var all []database
	p.Cache.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		index[key{a.Namespace, a.Name}] = len(all)
		all = append(all, database{Namespace: a.Namespace, Name: a.Name, autopilot: a})
	})
	p.Cache.EachTarget(func(t *autopilot.Target) {
		if i, ok := index[key{t.Namespace, t.Name}]; ok {
			all[i].target = t
			return
		}
		all = append(all, database{Namespace: t.Namespace, Name: t.Name, target: t})
	})
	for i := range all {
		v.summarize(&all[i])
	}
	return all
}
