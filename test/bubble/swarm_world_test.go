// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

const (
	swarmNamespace = "swarm"
	failoverTime   = 22 * time.Minute // until the other replica has the lease of a killed leader, and its first sweep is done
	operatorPeriod = 4 * time.Minute
)

// swarm is the world of one seed: two replicas of the service, an operator, people, and databases.
type swarm struct {
	*fleet
	plan       plan
	began      time.Time
	databases  []*database
	replicas   [2]*process
	operator   *operator
	flavors    map[string]flavors.Flavor
	mayCall    int // calls allowed today, besides those of sweeps
	mu         sync.Mutex
	lines      []string       // the timeline
	events     map[string]int // of this day, by database
	calls      map[string]int // of this day to the cloud, by operation
	reported   map[string]bool
	violations []string
	end        time.Duration // since began, once there is a violation
	disturbed  time.Time     // until then, outages or kills excuse delays
	soldOut    sync.Map      // flavor → until when
	refused    time.Duration // since began, until when the cloud refuses all flavors
}

func newSwarm(t *testing.T, p plan) *swarm {
	w := &swarm{plan: p, began: time.Now(), flavors: map[string]flavors.Flavor{}, events: map[string]int{}, calls: map[string]int{}, reported: map[string]bool{}, end: math.MaxInt64}
	cloud := simcloud.Options{Settings: p.settings, Fault: w.cloudFault, DeliveryFault: w.deliveryFault}
	w.fleet = newFleetIn(t, cloud, simkube.Options{WatchLag: p.watchLag, Untracked: []string{"leases", v1alpha1.Resource}})
	w.namespace(swarmNamespace)
	w.kube.SetAdmit(w.admit)
	w.runCloud()
	for _, d := range p.databases {
		w.addDatabase(d)
	}
	for _, engine := range []string{"MySQL", "PostgreSQL", "SQLServer"} {
		for _, d := range w.databases {
			if in := d.instance(); in.Engine == engine {
				list, err := w.personClient().ListFlavors(t.Context(), engine, in.Version)
				w.must(err)
				for _, f := range list {
					w.flavors[f.Code] = f
				}
			}
		}
	}
	w.operator = &operator{w: w, api: w.personClient()}
	w.disturb(45 * time.Minute) // where only nodes have data, a rule finds it after 30 minutes
	for i := range w.replicas {
		w.replicas[i] = w.startProcess(i)
	}
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

// disturb lets the oracle excuse delays of all databases for that time.
func (w *swarm) disturb(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if until := time.Now().Add(d); until.After(w.disturbed) {
		w.disturbed = until
	}
}

// calm returns the time since the last disturbance.
func (w *swarm) calm() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.disturbed)
}

// draw returns a number below 100 for a request. It depends only on the seed, the request, and the time in steps of 7 seconds.
func (w *swarm) draw(parts ...string) int {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, w.plan.seed, int(w.at()/(7*time.Second)), parts)
	return int(h.Sum32() % 100)
}

// outage returns the outage that affects a request, or nil.
func (w *swarm) outage(kind, service string, parts ...string) *outage {
	at := w.at()
	for i, o := range w.plan.outages {
		if at >= o.from && at < o.to && o.what == kind && (o.service == "" || service == "" || o.service == service) && w.draw(append(parts, service, kind)...) < o.percent {
			return &w.plan.outages[i]
		}
	}
	return nil
}

const replicaHeader = "X-Replica" // marks the requests of the service

func (w *swarm) cloudFault(r *http.Request) *simcloud.Fault {
	if r.Header.Get(replicaHeader) == "" {
		return nil
	}
	service, operation := simcloud.OperationOf(r)
	w.mu.Lock()
	w.calls[operation]++
	w.mu.Unlock()
	if r.Method == http.MethodPost && r.PathValue("instance") != "" {
		w.judgeRequest(r)
	}
	if operation == "DeleteAlarm" && w.draw("slow") < 20 {
		return &simcloud.Fault{Delay: 4 * time.Second}
	}
	if w.outage("cloud", service, operation, r.URL.RawQuery) == nil {
		return nil
	}
	switch number := w.draw(operation, "how"); {
	case number < 30:
		return &simcloud.Fault{Status: http.StatusInternalServerError}
	case number < 50:
		return &simcloud.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"5"}}}
	case number < 70:
		return &simcloud.Fault{Status: http.StatusServiceUnavailable}
	case number < 80:
		return &simcloud.Fault{Status: http.StatusForbidden, Body: `{"error_code":"DBS.200010","error_msg":"not authorized"}`}
	}
	return &simcloud.Fault{Status: http.StatusInternalServerError, Apply: true}
}

// deliveryFault lets each delivery reach one of the replicas that run, and loses, delays and repeats some.
func (w *swarm) deliveryFault(d simcloud.Delivery) simcloud.DeliveryFault {
	number := w.draw(d.TopicURN, d.Created.String())
	w.receive.Store(nil)
	for i := range w.replicas {
		if p := w.replicas[(i+number)%2]; p != nil && !p.dead.Load() {
			w.receive.Store(p.receiver)
			break
		}
	}
	switch {
	case w.outage("messages", "", d.TopicURN) != nil:
		return simcloud.DeliveryFault{Drop: d.Type == simcloud.TypeNotification}
	case w.outage("late messages", "", d.TopicURN) != nil:
		return simcloud.DeliveryFault{Delay: time.Duration(number) * time.Minute / 2, Duplicate: number%2 == 0}
	}
	return simcloud.DeliveryFault{Duplicate: number < 3, LoseReply: number > 96}
}

// process is one replica of the service.
type process struct {
	w        *swarm
	receiver *webhook.Receiver
	metrics  *prometheus.Registry
	dead     atomic.Bool
	frozen   atomic.Bool // it cannot renew its lease
	leads    atomic.Bool
	done     <-chan struct{} // closed when the process ends
	started  atomic.Bool
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// stop ends the process, and waits.
func (p *process) stop() {
	p.cancel()
	p.running.Wait()
	p.dead.Store(true)
}

// kill ends the process at once. All of its further calls fail.
func (p *process) kill() {
	if !p.dead.Swap(true) {
		p.cancel()
	}
}

var errDead = errors.New("the process is dead")

// cloudTransport sends the requests of a process to the cloud.
type cloudTransport struct{ *process }

func (c cloudTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(replicaHeader, "1")
	if err := wait(r, 100*time.Millisecond); err != nil {
		return nil, err
	}
	if c.dead.Load() {
		return nil, errDead
	}
	return c.w.sim.RoundTrip(r)
}

// wait returns after that time, or with an error as soon as the caller has given up. A killed process must not wait: the
// calls after it would look like a deadlock.
func wait(r *http.Request, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// kubeTransport sends the requests of a process to the API server.
type kubeTransport struct{ *process }

func (k kubeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	isLease := strings.Contains(r.URL.Path, "/leases/")
	isWatch := r.URL.Query().Get("watch") != ""
	if isLease && k.frozen.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if k.started.Load() && r.Method == http.MethodGet && r.URL.Query().Get("limit") == "1" { // the probe every 5 seconds would cost time, and is not judged here
		<-k.done
		return nil, errDead
	}
	if k.dead.Load() {
		return nil, errDead
	}
	if isWatch { // a bookmark every minute, and a new watch every few minutes, would cost a fifth of the time of a seed
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Del("allowWatchBookmarks")
		query.Set("timeoutSeconds", "7200")
		r.URL.RawQuery = query.Encode()
	}
	return k.w.kube.RoundTrip(r)
}

// startProcess starts a replica.
func (w *swarm) startProcess(i int) *process {
	ctx, cancel := context.WithCancel(w.t.Context())
	reg := prometheus.NewRegistry()
	p := &process{w: w, metrics: reg, done: ctx.Done(), cancel: cancel}
	of := w.options(cloudTransport{p})
	of.Allowed = autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}}
	of.SMNClient, of.MaxMessageAge, of.Recheck = smnClient(w.sim), time.Hour, 30*time.Second
	of.Sweep, of.MaxFlavorChanges, of.CloudRate = w.plan.sweep, w.plan.flavors, w.plan.rate
	of.Now = func() time.Time { return time.Now().Add(w.plan.skew) }
	if flags := w.draw("flags", strconv.Itoa(i)); flags < 30 { // the installation has changed
		of.Sweep, of.MaxFlavorChanges = w.plan.sweep/2, 1
	} else if flags < 60 {
		of.Namespaces = []string{swarmNamespace}
	}
	config := w.kube.Config()
	config.Transport = kubeTransport{p}
	start := func() bool {
		kube, parts, err := w.wire(ctx, config, of, reg, w.countEvent)
		if err != nil {
			return false
		}
		p.receiver = parts.Receiver
		p.started.Store(true)
		p.running.Go(func() { _ = kube.Run(ctx) })
		if kube.WaitForSync(ctx) != nil {
			return false
		}
		p.running.Go(func() { p.lead(ctx, kube, parts, i) })
		return true
	}
	if !start() {
		p.kill()
	}
	return p
}

func (w *swarm) countEvent(database string, e autopilot.Event) {
	w.logf(database, "event %s: %s", e.Reason, e.Note)
	w.judgeEvent(database, e)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[database]++
}

func (p *process) lead(ctx context.Context, kube *k8s.Cluster, parts app.Parts, i int) {
	for ctx.Err() == nil {
		lease := k8s.Lease{
			Namespace: "default", Pod: fmt.Sprintf("replica-%d", i),
			Duration: 15 * time.Minute, RenewDeadline: 10 * time.Minute, RetryPeriod: 5 * time.Minute, // fewer calls
			OnChange: func(leads bool) {
				p.leads.Store(leads)
				p.w.logf("", "replica %d leads: %t", i, leads)
			},
		}
		if err := kube.Lead(ctx, lease, parts.Controller.Run); err != nil && !errors.Is(err, k8s.ErrLeaseLost) && ctx.Err() == nil {
			time.Sleep(time.Minute)
		}
	}
}

// restart starts the replicas that have ended.
func (w *swarm) restart() {
	for i, p := range w.replicas {
		if p.dead.Load() {
			p.stop()
			w.replicas[i] = w.startProcess(i)
			w.logf("", "replica %d starts", i)
			w.disturb(5 * time.Minute)
		}
	}
}

// leader returns the replica that leads, or nil.
func (w *swarm) leader() *process {
	for _, p := range w.replicas {
		if p.leads.Load() && !p.dead.Load() {
			return p
		}
	}
	return nil
}

// judgeRequest judges a change that the service requests from the cloud.
func (w *swarm) judgeRequest(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	w.must(err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var q struct {
		Resize *struct {
			Code string `json:"spec_code"`
		} `json:"resize_flavor"`
		Enlarge *struct {
			Size int `json:"size"`
		} `json:"enlarge_volume"`
	}
	if json.Unmarshal(body, &q) != nil || q.Resize == nil && q.Enlarge == nil {
		w.violation("", "the service sends %s to %s", body, r.URL.Path)
		return
	}
	for _, d := range w.databases {
		switch id := r.PathValue("instance"); {
		case id != d.id:
		case q.Enlarge != nil:
			d.judgeVolume(q.Enlarge.Size, "the cloud")
			return
		default:
			d.judgeFlavor(q.Resize.Code, "the cloud")
			return
		}
	}
	w.violation("", "the service sends %s for %s, which is no present instance", body, r.URL.Path)
}

func withoutNulls(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for k, v := range out {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			out[k] = withoutNulls(v)
		}
	}
	return out
}
