// SPDX-License-Identifier: Apache-2.0

// Package page shows the databases in a browser: one static page of our own, and the JSON that its script draws.
//
// It knows neither Kubernetes nor the cloud. Databases come from a cache, so they cost no call. Cloud Eye's series come
// through a function that Options holds. The answers are shared for a minute, so that readers cannot load the cloud.
// The page only reads. The caller checks who may ask for it.
package page

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shared"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

//go:embed page.html page.css page.js icon.svg
var files embed.FS

const (
	// policy allows files and requests of this server only. It forbids inline code, frames, and HTML made from text.
	policy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"

	// seriesLimit is shorter than the 20 seconds that the script waits, so that the script gets the reason.
	seriesLimit = 15 * time.Second
	// seriesKept is how long all readers share an answer of Cloud Eye. Its shortest average here is 5 minutes.
	seriesKept = time.Minute
	// maxValue is a thousand times the largest volume in GB. A larger value is an error of the cloud.
	maxValue = 4e6
)

// Cache holds the last seen objects, without managedFields. The page does not modify them.
type Cache interface {
	HasSynced() bool
	Reachable() bool // reports whether the Kubernetes API answered recently
	EachAutopilot(f func(*v1alpha1.RdsAutopilot))
	EachTarget(f func(*autopilot.Target))
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	Target(namespace, name string) *autopilot.Target
}

// Options configure the page. All fields are required.
type Options struct {
	Cache Cache
	// Past returns Cloud Eye's averages per period since a time. It ends with its context.
	Past func(ctx context.Context, a *v1alpha1.RdsAutopilot, period time.Duration, since time.Time) (autopilot.Past, error)
	// Sweep and Recheck are the longest times to the next check of a database, normally and during a change.
	Sweep, Recheck time.Duration
	Version        string
	Now            func() time.Time
}

// New returns the handler of the page and of its API, for GET and HEAD.
func New(o Options) http.Handler { return newServer(o).handler() }

func newServer(o Options) *server {
	s := &server{Options: o}
	s.series = &shared.Reads[[2]string, []span]{Read: s.readSeries, Now: o.Now, Keep: seriesKept}
	return s
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, file := range map[string]string{
		"/{$}": "page.html", "/page.css": "page.css", "/page.js": "page.js", "/icon.svg": "icon.svg",
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, file) })
	}
	mux.HandleFunc("GET /api/databases", s.serveList)
	mux.HandleFunc("GET /api/databases/{namespace}/{name}", s.serveDatabase)
	mux.HandleFunc("GET /api/databases/{namespace}/{name}/series", s.serveSeries)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

type server struct {
	Options
	series *shared.Reads[[2]string, []span] // by namespace and name
}

type answer struct {
	Time           time.Time  `json:"time"`
	Version        string     `json:"version"`
	Synced         bool       `json:"synced"`
	Reachable      bool       `json:"reachable"`
	SweepSeconds   float64    `json:"sweepSeconds"`
	RecheckSeconds float64    `json:"recheckSeconds"`
	Databases      []database `json:"databases"`
}

// database has an RdsAutopilot, an Rds, or both.
type database struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Autopilot *v1alpha1.RdsAutopilot `json:"autopilot,omitempty"`
	Rds       *requested             `json:"rds,omitempty"`
}

type requested struct {
	VolumeGB int    `json:"volumeGB"`
	Flavor   string `json:"flavor"`
}

// span is a time range of the plots, with Cloud Eye's averages or the error of reading them.
type span struct {
	Hours         float64                     `json:"hours"`
	PeriodSeconds float64                     `json:"periodSeconds"`
	Until         time.Time                   `json:"until"`
	Error         string                      `json:"error,omitempty"`
	UsedGB        []point                     `json:"usedGB"`
	SizeGB        []point                     `json:"sizeGB"`
	Percent       map[v1alpha1.Metric][]point `json:"percent"`
}

// point is a time in Unix seconds and a value.
type point [2]float64

// serveList answers with all databases, sorted by name, so that equal answers are equal. Of the decisions it has the newest one of each metric, because 20
// for each database would be most of the answer.
func (s *server) serveList(w http.ResponseWriter, _ *http.Request) {
	index := map[[2]string]int{} // by namespace and name
	all := []database{}
	s.Cache.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		index[[2]string{a.Namespace, a.Name}] = len(all)
		shown := *a // it shares the rest with the cache
		shown.Status.Decisions = newestOfEachMetric(a.Status.Decisions)
		all = append(all, database{Namespace: a.Namespace, Name: a.Name, Autopilot: &shown})
	})
	s.Cache.EachTarget(func(t *autopilot.Target) {
		i, ok := index[[2]string{t.Namespace, t.Name}]
		if !ok {
			i = len(all)
			all = append(all, database{Namespace: t.Namespace, Name: t.Name})
		}
		all[i].Rds = requestedBy(t)
	})
	slices.SortFunc(all, func(x, y database) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	s.answer(w, all)
}

func (s *server) serveDatabase(w http.ResponseWriter, r *http.Request) {
	d := database{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	d.Autopilot, _ = s.Cache.Autopilot(d.Namespace, d.Name)
	t := s.Cache.Target(d.Namespace, d.Name)
	if t != nil {
		d.Rds = requestedBy(t)
	}
	if t == nil && d.Autopilot == nil {
		refuse(w, http.StatusNotFound, "The service watches no database of this name")
		return
	}
	s.answer(w, []database{d})
}

// serveSeries answers with Cloud Eye's series of one database. A request that the service's end interrupts gets 503.
func (s *server) serveSeries(w http.ResponseWriter, r *http.Request) {
	key := [2]string{r.PathValue("namespace"), r.PathValue("name")}
	if _, ok := s.Cache.Autopilot(key[0], key[1]); !ok {
		refuse(w, http.StatusNotFound, "There is no RdsAutopilot of this name")
		return
	}
	spans, err := s.series.Get(r.Context(), key, s.Now().Add(-seriesKept))
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "Cannot read the measurements: "+err.Error())
		return
	}
	write(w, http.StatusOK, map[string]any{"spans": spans})
}

// readSeries reads the last 24 hours and the last 14 days. A span that fails does not take the other one with it.
func (s *server) readSeries(ctx context.Context, key [2]string, _ time.Time) ([]span, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, seriesLimit)
	defer cancel()
	now := s.Now()
	spans := []span{
		{Hours: 24, PeriodSeconds: (5 * time.Minute).Seconds(), Until: now},
		{Hours: 14 * 24, PeriodSeconds: time.Hour.Seconds(), Until: now},
	}
	a, ok := s.Cache.Autopilot(key[0], key[1])
	if !ok {
		return nil, now, autopilot.ErrGone
	}
	for i := range spans {
		p := &spans[i]
		period := time.Duration(p.PeriodSeconds) * time.Second
		past, err := s.Past(ctx, a, period, now.Add(-time.Duration(p.Hours)*time.Hour))
		if err != nil {
			p.Error = err.Error()
			continue
		}
		p.UsedGB, p.SizeGB, p.Percent = possible(past.UsedGB), possible(past.SizeGB), map[v1alpha1.Metric][]point{}
		for m, points := range past.Percent {
			p.Percent[m] = possible(points)
		}
	}
	return spans, now, nil
}

// possible returns the values that can be true. JSON has no NaN, and an axis to 1e308 would show nothing.
func possible(points []autopilot.Point) []point {
	kept := make([]point, 0, len(points))
	for _, p := range points {
		if p.Value >= 0 && p.Value <= maxValue { // false for NaN
			kept = append(kept, point{float64(p.Time.Unix()), p.Value})
		}
	}
	return kept
}

func requestedBy(t *autopilot.Target) *requested {
	if t.NoRds {
		return nil
	}
	return &requested{VolumeGB: t.Wanted.VolumeGB, Flavor: t.Wanted.Flavor}
}

// newestOfEachMetric returns the first record of each metric. records are sorted, the newest first.
func newestOfEachMetric(records []v1alpha1.DecisionRecord) (newest []v1alpha1.DecisionRecord) {
	for _, r := range records {
		if !slices.ContainsFunc(newest, func(n v1alpha1.DecisionRecord) bool { return n.Metric == r.Metric }) {
			newest = append(newest, r)
		}
	}
	return newest
}

func (s *server) answer(w http.ResponseWriter, all []database) {
	write(w, http.StatusOK, answer{
		Time: s.Now().UTC(), Version: s.Version, Synced: s.Cache.HasSynced(), Reachable: s.Cache.Reachable(),
		SweepSeconds: s.Sweep.Seconds(), RecheckSeconds: s.Recheck.Seconds(), Databases: all,
	})
}

func refuse(w http.ResponseWriter, status int, text string) {
	write(w, status, map[string]string{"error": text})
}

func write(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"The answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has gone
}
