// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simoperator "github.com/mcsps/rds-autopilot/test/sim/operator"
)

// fault is what becomes of one call of the process.
type fault struct {
	name    string
	kills   bool // the process
	atReads bool // for a read it is no other one's repetition
	simcloud.Fault
}

const noJSON = "<html>"

// A refused write to the API server is a conflict.
var faults = []fault{
	{"killed before", true, true, simcloud.Fault{Hang: true}},
	{"killed after", true, false, simcloud.Fault{Hang: true, Apply: true}},
	{"answer lost", false, false, simcloud.Fault{Hang: true, Apply: true}},
	{"500", false, true, simcloud.Fault{Status: http.StatusInternalServerError}},
	{"refused", false, true, simcloud.Fault{Status: http.StatusForbidden, Body: `{"error_code":"DBS.200010","error_msg":"not authorized"}`}},
	{"no JSON", false, true, simcloud.Fault{Status: http.StatusOK, Body: noJSON}},
	{"no answer", false, true, simcloud.Fault{Hang: true}},
}

// call is a call of the process in a story, such as "EnlargeVolume 1" or "PATCH rdss/db 2".
type call struct {
	name    string
	isRead  bool
	changes bool // it requests a change of the Rds or of the instance
}

// scene is the world of one run of a story: a process that is started again after it has ended, and at most one fault.
type scene struct {
	*fleet
	ids      []string // of the instances, the present one last
	operator *simoperator.Operator
	mode     v1alpha1.Mode // of the process; Auto if empty
	before   []string      // what there was before the turn
	events   sync.Map      // by reason
	at       string        // the call that has the fault
	fault    fault
	also     func(*scene) // is called before that call; nil for a single fault

	withdrawn     atomic.Bool // the process has no rights in the namespace
	oldLists      atomic.Bool // each list of instances is as the one before was
	leaderChanges atomic.Bool

	mu      sync.Mutex
	process *replica
	records bool           // calls are counted
	calls   []call         // in the order in which they came
	count   map[string]int // of each call
	writes  int            // calls so far that were no reads
	read    map[string]int // of each read: the writes before it counted last
	fired   bool
}

// replica is a process of the service, whose calls fail once it was killed.
type replica struct {
	*scene
	ctx  context.Context
	kill context.CancelFunc
	run  *service // nil until it has started
	list []byte   // the last list of instances
}

// newScene returns the world of a story, in a running cloud.
func newScene(t *testing.T, at string, f fault, also func(*scene)) *scene {
	s := &scene{count: map[string]int{}, read: map[string]int{}, at: at, fault: f, also: also}
	s.fleet = newFleetIn(t, simcloud.Options{Fault: s.cloudFault})
	s.namespace(team)
	s.runCloud()
	return s
}

// run runs a story to its end. Calls of its last hour are not counted, so that every fault has an hour to be overcome.
func (s *scene) run(st story, longer time.Duration) {
	if st.before != nil {
		st.before(s)
		s.start()
		s.waitUntil("all is armed", func() bool { return s.areArmed(1) })
		if st.operator { // it removes the switch, which the process has stored now
			s.operator = s.runOperator()
		}
		time.Sleep(20 * time.Minute) // a flavor may change
	}
	s.before = s.end()
	s.setRecords(true)
	st.turn(s)
	time.AfterFunc(st.lasts-time.Hour, func() { s.setRecords(false) })
	for end := time.Now().Add(st.lasts + longer); time.Now().Before(end); time.Sleep(10 * time.Second) {
		if s.leaderChanges.CompareAndSwap(true, false) {
			s.stop()
		}
		s.start()
	}
}

func (s *scene) setRecords(to bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = to
}

// start starts a process unless one runs.
func (s *scene) start() {
	if s.process != nil && s.process.ctx.Err() == nil {
		return
	}
	s.stop()
	p := &replica{scene: s}
	p.ctx, p.kill = context.WithCancel(s.t.Context())
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	o := applyCloud()
	o.ctx, o.transport, o.kube, o.smn, o.event = p.ctx, cloudCalls{p}, p, s.sim, func(_ string, e autopilot.Event) { s.events.Store(e.Reason, true) }
	o.namespaces, o.mode = []string{team}, s.mode
	var err error
	if p.run, err = s.tryStart(o); err != nil {
		p.kill()
	}
}

// stop ends the process as a SIGTERM does, or waits until a killed one has ended.
func (s *scene) stop() {
	if p := s.process; p != nil {
		p.kill()
		if p.run != nil {
			p.run.stop()
		}
	}
}

// meets counts a call, and returns the fault that it has. Reads count again after each write, because a round that only reads
// is repeated without end.
func (s *scene) meets(c call) *simcloud.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.isRead && s.read[c.name] == s.writes+1 || !s.records {
		return nil
	}
	if !c.isRead {
		s.writes++
	}
	s.read[c.name] = s.writes + 1
	s.count[c.name]++
	c.name = fmt.Sprint(c.name, " ", s.count[c.name])
	s.calls = append(s.calls, c)
	if c.name != s.at || s.fired {
		return nil
	}
	s.fired = true
	if s.also != nil {
		s.also(s)
	}
	if s.fault.kills {
		s.process.kill()
	}
	f := s.fault.Fault
	f.Apply = f.Apply || f.Body == noJSON && strings.HasPrefix(strings.ToUpper(c.name), "DELETE") // an answer without a body is no JSON either
	return &f
}

const replicaHeader = "X-Replica" // marks the requests of the service

// cloudCalls sends the calls of a process to the cloud.
type cloudCalls struct{ *replica }

func (c cloudCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(replicaHeader, "1")
	res, err := c.sim.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/instances") && res.StatusCode == http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		c.mu.Lock()
		if body, c.list = c.list, body; body == nil || !c.oldLists.Load() {
			body = c.list
		}
		c.mu.Unlock()
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return res, err
}

// cloudFault counts a call of the process to the cloud.
func (s *scene) cloudFault(r *http.Request) *simcloud.Fault {
	if r.Header.Get(replicaHeader) == "" {
		return nil
	}
	service, operation := simcloud.OperationOf(r)
	isRead := r.Method == http.MethodGet || service == "iam" || operation == "BatchMetricData"
	return s.meets(call{operation, isRead, r.PathValue("instance") != "" && !isRead})
}

// RoundTrip sends a call of a process to the API server.
func (p *replica) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	if p.withdrawn.Load() && strings.Contains(r.URL.Path, "/namespaces/"+team+"/") {
		return refusedBy(r, http.StatusForbidden, "Forbidden"), nil
	}
	query := r.URL.Query()
	if query.Get("watch") != "" || query.Get("limit") == "1" { // a watch, or the probe of every five seconds
		return p.kube.RoundTrip(r)
	}
	path := strings.Split(r.URL.Path, "/")
	if i := slices.Index(path, "namespaces"); i >= 0 {
		path = path[min(i+2, len(path)-1):]
	}
	c := call{r.Method + " " + strings.Join(path, "/"), r.Method == http.MethodGet, r.Method == http.MethodPatch && path[0] == "rdss"}
	f := p.meets(c)
	if f == nil {
		return p.kube.RoundTrip(r)
	}
	if f.Apply {
		if _, err := p.kube.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err != nil {
			return nil, err
		}
	}
	switch {
	case f.Hang:
		<-r.Context().Done() // each client has a timeout
		return nil, r.Context().Err()
	case f.Status == http.StatusForbidden && !c.isRead:
		return refusedBy(r, http.StatusConflict, "Conflict"), nil
	case f.Status == http.StatusForbidden:
		return refusedBy(r, http.StatusForbidden, "Forbidden"), nil
	case f.Status == http.StatusOK:
		res := refusedBy(r, f.Status, "")
		res.Body = io.NopCloser(strings.NewReader(f.Body))
		return res, nil
	}
	return refusedBy(r, f.Status, "InternalError"), nil
}

// refusedBy returns the answer of an API server that does not carry out a request.
func refusedBy(r *http.Request, status int, reason string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused by the test","reason":%q,"code":%d}`, reason, status)
	return &http.Response{
		StatusCode: status, Status: reason, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// end returns what a story has left: in the cloud, in the Rds and in the RdsAutopilots. Times and texts are left out.
func (s *scene) end() (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for i, id := range s.ids {
		if in, ok := s.sim.Instance(id); ok {
			add("instance %d: %s, %d GB, %s", i, in.Status, in.VolumeGB, in.Flavor)
		}
	}
	for _, j := range s.sim.Jobs() {
		add("job %s to %s: %s", j.Name, j.To, j.Status)
	}
	for _, t := range s.sim.Topics() {
		add("topic %s", t.DisplayName)
	}
	for _, x := range s.sim.Subscriptions() {
		add("subscription %s: %v", x.Endpoint, x.Status)
	}
	for _, r := range s.sim.Rules() {
		add("rule %s of instance %d: %v %v, enabled %t, actions %t %d", r.Name, slices.Index(s.ids, r.Metric.Dimensions[0].Value),
			r.Condition.Value, r.Condition.Count, r.Enabled, r.ActionEnabled, len(r.AlarmActions))
	}
	topic := s.topic()
	add("the ConfigMap has a topic: %t, %s, %s", topic["topicURN"] != "", topic["subscription"], topic["url"])
	for _, a := range s.autopilots() {
		add("%s is on: %s %s", a.Name, a.Status.EffectiveMode, text(a.Status.Switch.Value))
		add("rules in the status: %d", len(a.Status.Alarms.Rules))
		for _, c := range a.Status.Conditions {
			add("condition %s: %s, %s", c.Type, c.Status, c.Reason)
		}
		for _, ch := range a.Status.Changes {
			add("change %s %s → %s by %s: %s", ch.Kind, ch.From, ch.To, ch.By, ch.State)
		}
		for _, d := range a.Status.Decisions {
			if d.Action != string(autopilot.ActionNone) && d.Reason == string(autopilot.ReasonAlarmInForce) {
				add("decision %s %s %s → %s", d.Metric, d.Action, d.From, d.To)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
