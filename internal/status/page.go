// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net/http"
	"time"

	// html/template without calls of methods, for which the linker would keep every method of every type: 10 MB of the binary.
	template "github.com/DataDog/datadog-agent/pkg/template/html"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

//go:embed *.html status.css status.js icon.svg
var files embed.FS

const (
	renderLimit = 10 * time.Second // that a request waits for those before it

	// policy allows our stylesheet, script and icon, and to ask us: nothing inline, no other host, no frame.
	policy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// Cache is what the API server has of the namespaces that are watched, as last seen. What it hands out is not altered.
type Cache interface {
	HasSynced() bool
	EachAutopilot(f func(*v1alpha1.RdsAutopilot)) // may leave out changes, former volumes and decisions
	EachTarget(f func(*autopilot.Target))
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	Target(namespace, name string) *autopilot.Target
}

// Options are where the page finds what it shows.
type Options struct {
	Cache   Cache
	Metrics prometheus.Gatherer
	Leader  func() string // the pod that leads, as last seen; empty where it is not known

	// Plan says what would be decided now for a database, and Past what was measured of it since then, by averages over a
	// period. They alone ask the cloud, and only when a person opens the page of a plan or of a database; nil where that is not
	// offered.
	Plan func(ctx context.Context, namespace, name string) (*autopilot.Plan, error)
	Past func(ctx context.Context, namespace, name string, period time.Duration, since time.Time) (autopilot.Past, error)

	CloudErrors func() []CloudError // the last one of each service; nil where there is no cloud
	// Replicas asks the API server for the pods of the service, when a person opens the page of the health.
	Replicas func(ctx context.Context) ([]Replica, error)
	// LastHour is how many messages of a type were answered with a result in the last hour.
	LastHour func(messageType, result string) int

	Mode           v1alpha1.Mode // upper bound for every database
	Sweep, Recheck time.Duration // between two looks at a database, and where something is under way
	Version        string
	Log            *zap.Logger
	Now            func() time.Time
}

type pages struct {
	Options
	overview, database, plan, health, failure *template.Template
	plans                                     *answers[string]
	pasts                                     *answers[pasts]
	replicas                                  *answers[[]Replica]
	slot                                      chan struct{} // one page is put together at a time: decisions go first
}

// New returns the handler of the status page: the overview at /, one database below /databases, and the replica at /health.
func New(o Options) (http.Handler, error) {
	p := &pages{Options: o, slot: make(chan struct{}, 1)}
	p.plans = newAnswers(p.planText, planKept, o.Now)
	p.pasts = newAnswers(p.askPasts, o.Sweep, o.Now)
	p.replicas = newAnswers(p.askReplicas, replicasKept, o.Now)
	for file, t := range map[string]**template.Template{
		"overview.html": &p.overview, "database.html": &p.database, "plan.html": &p.plan, "health.html": &p.health, "failure.html": &p.failure,
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
	if o.Plan != nil {
		mux.Get("/databases/{namespace}/{name}/plan", p.servePlan)
	}
	mux.Get("/health", p.serveHealth)
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

// page is what the layout needs, and the content of one page.
type page struct {
	Root    string // the way to the overview, relative: a proxy may serve us below a path of its own
	Title   string
	Now     moment
	Version string
	Synced  bool
	Replica replica
	Follows bool // the script renews it; a plan would have the cloud asked each time
	Content any
}

// answer is one page before it is rendered.
type answer struct {
	status   int
	template *template.Template
	root     string
	title    string
	content  any
}

// serve renders into memory first: a reader that is slow holds nobody up, and an error is no half page.
func (p *pages) serve(show func(*http.Request, *view) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(renderLimit)
		defer timer.Stop()
		select {
		case p.slot <- struct{}{}:
		case <-timer.C:
			http.Error(w, "too many people look at the status page; try again", http.StatusServiceUnavailable)
			return
		case <-r.Context().Done():
			return
		}
		status, body, err := p.render(r, show)
		<-p.slot
		if err != nil {
			p.Log.Error("render the status page", zap.Error(err))
			http.Error(w, "the status page could not be rendered; the log says why", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(body) //nolint:gosec // the template has escaped it; the client is gone where this fails
	}
}

func (p *pages) render(r *http.Request, show func(*http.Request, *view) answer) (int, []byte, error) {
	v := &view{now: p.Now(), mode: p.Mode, sweep: p.Sweep, recheck: p.Recheck, samples: gather(p.Metrics), leader: p.Leader()}
	a := show(r, v)
	var out bytes.Buffer
	err := a.template.ExecuteTemplate(&out, "layout.html", page{
		Root: a.root, Title: a.title, Now: v.moment(v.now), Version: p.Version, Synced: p.Cache.HasSynced(),
		Replica: v.replica(), Follows: a.template != p.plan && a.template != p.failure, Content: a.content,
	})
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", a.title, err)
	}
	return a.status, visible(out.Bytes()), nil
}

// databases returns all that are watched: those with an RdsAutopilot, with an Rds, or both.
func (p *pages) databases(v *view) []database {
	type key struct{ namespace, name string }
	index := map[key]int{}
	var all []database
	p.Cache.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		if whole, ok := p.Cache.Autopilot(a.Namespace, a.Name); ok { // else it was deleted meanwhile
			index[key{a.Namespace, a.Name}] = len(all)
			all = append(all, database{Namespace: a.Namespace, Name: a.Name, autopilot: whole})
		}
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
