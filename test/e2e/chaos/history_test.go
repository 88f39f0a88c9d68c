// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

// history records what the oracle judges, by the names of the databases.
type history struct {
	mu       sync.Mutex
	loads    map[string][]simcloud.Workload // each database's, oldest first
	requests []request                      // patches of Rds, and requests to the cloud, oldest first
	wrong    []string                       // violations that need no later fact
	answers  []acknowledged
	sizes    map[string][]int32        // values of spec.volumesize, without repetitions
	rules    map[string]bool           // ids of all rules that a status has recorded
	first    map[string]map[string]any // first specs
}

// request is a patch of an Rds, or a change that the service requested from the cloud.
type request struct {
	name, field string
	from, to    any
	loads       []simcloud.Workload // the loads of the database until then
	unknown     bool                // the API server did not answer
	cloud       bool                // requested from the cloud
}

// acknowledged is a notification that was answered 200.
type acknowledged struct {
	name    string // of the database
	metric  v1alpha1.Metric
	alarmID string
	at      time.Time // the alarm's own
	result  string    // the receiver's answer
	known   bool      // the rule was recorded before the message was sent
}

func newHistory() *history {
	return &history{loads: map[string][]simcloud.Workload{}, sizes: map[string][]int32{}, rules: map[string]bool{}, first: map[string]map[string]any{}}
}

func (h *history) load(name string, l simcloud.Workload) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loads[name] = append(h.loads[name], l)
}

// answered checks every write of the service to an Rds. It is a hook of the proxy.
func (h *history) answered(r *http.Request, body []byte, status int) {
	verb, resource, _ := strings.Cut(faults.KubeName(r), " ")
	if !strings.HasPrefix(resource, "rdss") || verb == "get" || verb == "list" || verb == "watch" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var ops []struct {
		Op, Path string
		Value    any
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	err := json.Unmarshal(body, &ops)
	if len(ops) == 4 && ops[1].Op == "test" && ops[1].Path == "/status/id" { // of an instance that is known
		ops = slices.Delete(ops, 1, 2)
	}
	if verb != "patch" || resource != "rdss" || err != nil || len(ops) != 3 || ops[0].Op != "test" || ops[0].Path != "/metadata/uid" ||
		ops[1].Op != "test" || ops[2].Op != "replace" || ops[1].Path != ops[2].Path ||
		ops[2].Path != "/spec/volumesize" && ops[2].Path != "/spec/flavorref" {
		h.wrong = append(h.wrong, fmt.Sprintf("%s: a write that is not one of the two: %s %s %s", name, r.Method, r.URL.Path, body))
		return
	}
	if status != http.StatusOK && status != 0 {
		return
	}
	h.requests = append(h.requests, request{
		name: name, field: strings.TrimPrefix(ops[2].Path, "/spec/"), from: ops[1].Value, to: ops[2].Value,
		loads: slices.Clone(h.loads[name]), unknown: status == 0,
	})
}

// requestedChange records a change that the service requests from the cloud. A request for the present size or flavor is no
// change: the service repeats a request whose answer was lost.
func (h *history) requestedChange(in simcloud.Instance, r *http.Request) {
	var body struct {
		Resize struct {
			Code string `json:"spec_code"`
		} `json:"resize_flavor"`
		Enlarge struct {
			Size int `json:"size"`
		} `json:"enlarge_volume"`
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	x := request{name: in.Name, loads: slices.Clone(h.loads[in.Name]), cloud: true}
	err := json.NewDecoder(r.Body).Decode(&body)
	switch {
	case err != nil || in.Name == "" || (body.Resize.Code == "") == (body.Enlarge.Size == 0):
		h.wrong = append(h.wrong, fmt.Sprintf("%s: a request to the cloud that cannot be read: %s, %v", in.Name, r.URL.Path, err))
		return
	case body.Resize.Code == in.Flavor || body.Enlarge.Size == in.VolumeGB:
		return
	case body.Resize.Code != "":
		x.field, x.from, x.to = "flavorref", in.Flavor, body.Resize.Code
	default:
		x.field, x.from, x.to = "volumesize", float64(in.VolumeGB), float64(body.Enlarge.Size)
	}
	h.requests = append(h.requests, x)
}

// RoundTrip delivers a message and records the alarms that are acknowledged.
func (h *history) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	note := h.about(sent)
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(sent))
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // all of it is read
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	if note != nil && res.StatusCode == http.StatusOK {
		note.result = strings.TrimSpace(string(text))
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answers = append(h.answers, *note)
	}
	return res, nil
}

// about parses a message. It returns nil if that is no alarm.
func (h *history) about(sent []byte) *acknowledged {
	var e simcloud.Envelope
	var alarm struct {
		ID   string `json:"alarm_id"`
		Name string `json:"alarm_name"`
		Time int64  `json:"time"`
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := json.Unmarshal(sent, &e); err != nil {
		h.wrong = append(h.wrong, fmt.Sprintf("a message that cannot be read was sent: %v", err))
		return nil
	}
	if e.Type != simcloud.TypeNotification {
		return nil
	}
	err := json.Unmarshal([]byte(e.Message), &alarm)
	parts := strings.Split(alarm.Name, "_") // autopilot_<namespace>_<name>_<hash>_<metric>
	if err != nil || len(parts) != 5 {
		h.wrong = append(h.wrong, fmt.Sprintf("an alarm that cannot be read was sent: %q, %v", alarm.Name, err))
		return nil
	}
	return &acknowledged{
		name: parts[2], metric: v1alpha1.Metric(parts[4]), alarmID: alarm.ID, at: time.UnixMilli(alarm.Time), known: h.rules[alarm.ID],
	}
}

// line records races and panics in the service's output.
func (h *history) line(p *world.Process, l world.Line) {
	for _, bad := range []string{"DATA RACE", "panic", "fatal error"} {
		if strings.Contains(l.Raw, bad) {
			h.mu.Lock()
			h.wrong = append(h.wrong, fmt.Sprintf("process %d wrote: %s", p.PID, l.Raw))
			h.mu.Unlock()
		}
	}
}

func (h *history) sawRds(u *unstructured.Unstructured) {
	var r otcv1.Rds
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r); err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, seen := h.first[r.Name]; !seen {
		h.first[r.Name], _, _ = unstructured.NestedMap(u.Object, "spec")
	}
	if s := h.sizes[r.Name]; len(s) == 0 || s[len(s)-1] != r.Spec.VolumeSize {
		h.sizes[r.Name] = append(s, r.Spec.VolumeSize)
	}
}

func (h *history) sawAutopilot(u *unstructured.Unstructured) {
	var a v1alpha1.RdsAutopilot
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &a); err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, rule := range a.Status.Alarms.Rules {
		if rule.AlarmID != "" {
			h.rules[rule.AlarmID] = true
		}
	}
}

// follow calls look with every version of every object until the context ends. After an outage of the API server it
// continues with the last version that it saw, unless that has expired.
func follow(ctx context.Context, in dynamic.ResourceInterface, look func(*unstructured.Unstructured)) {
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			list, err := in.List(ctx, metav1.ListOptions{})
			if err != nil {
				rest(ctx)
				continue
			}
			for i := range list.Items {
				look(&list.Items[i])
			}
			version = list.GetResourceVersion()
		}
		w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version = ""
		}
		if err != nil {
			rest(ctx)
			continue
		}
		for event := range w.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case !ok || event.Type == watch.Error:
				version = ""
			case event.Type == watch.Added || event.Type == watch.Modified:
				look(u)
				fallthrough
			default:
				version = u.GetResourceVersion()
			}
		}
		w.Stop()
	}
}

// rest waits between two requests while the API server does not answer.
func rest(ctx context.Context) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
	}
}
