// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

const (
	swarmNamespace = "swarm"
	operatorPeriod = 4 * time.Minute
)

// swarm is the world of one seed: the service, an operator, people, and databases.
type swarm struct {
	*fleet
	plan       plan
	began      time.Time
	databases  []*database
	service    *service
	person     *otc.Cloud
	flavors    map[string]flavors.Flavor
	mayCall    int // calls allowed today, besides those of sweeps
	mu         sync.Mutex
	lines      []string       // the timeline
	events     map[string]int // of this day, by database
	calls      int            // of this day to the cloud
	reported   map[string]bool
	violations []string
	end        time.Duration // since began, once there is a violation
}

func newSwarm(t *testing.T, p plan) *swarm {
	w := &swarm{plan: p, began: time.Now(), flavors: map[string]flavors.Flavor{}, events: map[string]int{}, reported: map[string]bool{}, end: math.MaxInt64}
	w.fleet = newFleetIn(t, simcloud.Options{Settings: p.settings}, simkube.Options{WatchLag: p.watchLag, Untracked: []string{v1alpha1.Resource}})
	w.namespace(swarmNamespace)
	w.kube.SetAdmit(w.admit)
	w.runCloud()
	w.person = w.personClient()
	for _, d := range p.databases {
		w.addDatabase(d)
	}
	for _, d := range w.databases {
		list, err := w.person.ListFlavors(t.Context(), d.first.Engine, d.first.Version)
		w.must(err)
		for _, f := range list {
			w.flavors[f.Code] = f
		}
	}
	w.service = w.start(flags{
		sweep: p.sweep, rate: p.rate, changes: p.flavors, maxAge: time.Hour, recheck: 30 * time.Second, smn: w.sim,
		allowed:   autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}},
		transport: roundTrip(w.callCloud), kube: roundTrip(w.callKube), event: w.countEvent,
		now: func() time.Time { return time.Now().Add(p.skew) },
	})
	return w
}

func (w *swarm) at() time.Duration { return time.Since(w.began) }

// logf adds a line to the timeline.
func (w *swarm) logf(database, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.at()
	w.lines = append(w.lines, fmt.Sprintf("day %2d %s %-6s %s", at/day, time.Time{}.Add(at%day).Format("15:04:05"), database, fmt.Sprintf(format, args...)))
}

// violation records that the contract does not hold.
func (w *swarm) violation(database, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.logf(database, "VIOLATION: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = min(w.end, w.at()+2*time.Hour)
	w.violations = append(w.violations, database+": "+text)
}

// database returns the database with that name, or nil.
func (w *swarm) database(name string) *database {
	if i := slices.IndexFunc(w.databases, func(d *database) bool { return d.name == name }); i >= 0 {
		return w.databases[i]
	}
	return nil
}

// callCloud sends a request of the service to the cloud, and judges the change that it requests.
func (w *swarm) callCloud(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.calls++
	w.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/instances/") {
		w.judgeRequest(r)
	}
	return w.sim.RoundTrip(r)
}

// judgeRequest judges a change that the service requests from the cloud.
func (w *swarm) judgeRequest(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	w.must(err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var q struct {
		Resize struct {
			Code string `json:"spec_code"`
		} `json:"resize_flavor"`
		Enlarge struct {
			Size int `json:"size"`
		} `json:"enlarge_volume"`
	}
	w.must(json.Unmarshal(body, &q))
	i := slices.IndexFunc(w.databases, func(d *database) bool { return strings.Contains(r.URL.Path, d.id) })
	switch {
	case i >= 0 && q.Enlarge.Size > 0:
		w.databases[i].judgeVolume(q.Enlarge.Size)
	case i >= 0 && q.Resize.Code != "":
		w.databases[i].judgeFlavor(q.Resize.Code)
	default:
		w.violation("", "the service sends %s to %s", body, r.URL.Path)
	}
}

// callKube sends a request of the service to the API server. Probes, bookmarks and new watches every few minutes would cost
// a fifth of the time of a seed, and are not judged here.
func (w *swarm) callKube(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case query.Get("limit") == "1" && w.at() > time.Minute:
		<-w.t.Context().Done()
	case query.Get("watch") != "":
		r = r.Clone(r.Context())
		query.Del("allowWatchBookmarks")
		query.Set("timeoutSeconds", "7200")
		r.URL.RawQuery = query.Encode()
	}
	return w.kube.RoundTrip(r)
}

func (w *swarm) countEvent(database string, e autopilot.Event) {
	w.logf(database, "event %s: %s", e.Reason, e.Note)
	w.judgeEvent(database, e)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[database]++
}

// operate applies every Rds as the archived operator does: the volume first and only upwards.
func (w *swarm) operate() {
	for _, object := range w.kube.Objects(otcv1.GroupVersion().WithResource(otcv1.Resource)) {
		rds := decodeAs[otcv1.Rds](w.fleet, object)
		in := w.database(rds.Name).instance()
		var err error
		switch {
		case in.Status != simcloud.StatusActive && in.Status != simcloud.StatusStorageFull:
		case int(rds.Spec.VolumeSize) > in.VolumeGB:
			_, err = w.person.Enlarge(w.t.Context(), in.ID, int(rds.Spec.VolumeSize), nil)
		case rds.Spec.FlavorRef != in.Flavor && in.Status == simcloud.StatusActive:
			_, err = w.person.Resize(w.t.Context(), in.ID, rds.Spec.FlavorRef, nil)
		}
		w.must(err)
	}
}
