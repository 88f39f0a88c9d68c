// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/duration"
)

// sample is one value of the registry.
type sample struct {
	labels map[string]string
	value  float64
}

// gather reads the service's own metrics, without the prefix of their names. Where one cannot be read, the others are shown.
func gather(from prometheus.Gatherer) map[string][]sample {
	families, _ := from.Gather() // /metrics tells what could not be read
	samples := map[string][]sample{}
	for _, f := range families {
		name, own := strings.CutPrefix(f.GetName(), "rds_autopilot_")
		if !own {
			continue
		}
		for _, m := range f.GetMetric() {
			s := sample{labels: map[string]string{}, value: m.GetGauge().GetValue() + m.GetCounter().GetValue()} // one of them is nil
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			samples[name] = append(samples[name], s)
		}
	}
	return samples
}

// replica is what the process that answers knows of itself.
type replica struct {
	Leads            bool
	Leader           string // the pod that leads; empty where it is not known
	KubernetesAway   bool
	CloudAway        bool   // refused the credentials, or was never reached
	LastSweep        moment // none on a replica that never led
	SweepOverdue     bool
	WaitingDatabases int
	Interval         string // between two sweeps
	ForeignObjects   int
}

func (v *view) replica() replica {
	value := func(name string) (float64, bool) {
		if len(v.samples[name]) == 0 {
			return 0, false
		}
		return v.samples[name][0].value, true
	}
	r := replica{Leader: v.leader}
	leads, _ := value("leader")
	r.Leads = leads == 1
	reachable, known := value("kubernetes_reachable")
	r.KubernetesAway = known && reachable == 0
	loggedIn, known := value("cloud_logged_in")
	r.CloudAway = known && loggedIn == 0
	if at, _ := value("last_sweep_timestamp_seconds"); at > 0 {
		last := time.Unix(int64(at), 0)
		r.LastSweep, r.SweepOverdue = v.moment(last), r.Leads && v.now.Sub(last) > 3*v.sweep
	}
	n, _ := value("waiting_databases")
	r.WaitingDatabases = int(n)
	n, _ = value("foreign_objects")
	r.ForeignObjects, r.Interval = int(n), duration.HumanDuration(v.sweep)
	return r
}

// calls are those to one operation of a cloud service.
type calls struct {
	Service, Operation string
	Good               int
	Failed             int
	Codes              string // of those that failed, with their number
}

// messages are those the receiver answered in one way.
type messages struct {
	Type, Result string
	Hour, Total  int // in the last hour, and since the start
	Tone         string
}

// CloudError is why the newest request to a service of the cloud that failed did so.
type CloudError struct {
	Service, Text string
	Time          time.Time
}

// failedCall is a CloudError as people read it.
type failedCall struct {
	Service, Text string
	Time          moment
}

type health struct {
	Replica  replica
	Pods     []pod
	Unknown  string // why the replicas are not known
	Calls    []calls
	Errors   []failedCall
	Messages []messages
}

func (p *pages) showHealth(v *view, replicas []Replica, failed error) answer {
	h := health{Replica: v.replica(), Pods: v.pods(replicas), Calls: cloudCalls(v.samples["cloud_requests_total"]), Messages: received(v.samples["notifications_total"], p.LastHour)}
	if failed != nil {
		h.Unknown = failed.Error()
	}
	if p.CloudErrors != nil {
		for _, e := range p.CloudErrors() {
			h.Errors = append(h.Errors, failedCall{e.Service, e.Text, v.moment(e.Time)})
		}
	}
	return answer{http.StatusOK, p.health, "./", "Health of this replica", h}
}

// cloudCalls has one line for each operation that was called, those that failed first.
func cloudCalls(samples []sample) (all []calls) {
	index := map[string]int{}
	for _, s := range samples {
		n, code := int(s.value), s.labels["code"]
		if n == 0 {
			continue
		}
		key := s.labels["service"] + " " + s.labels["operation"]
		i, ok := index[key]
		if !ok {
			i = len(all)
			index[key] = i
			all = append(all, calls{Service: s.labels["service"], Operation: s.labels["operation"]})
		}
		if strings.HasPrefix(code, "2") {
			all[i].Good += n
			continue
		}
		all[i].Failed += n
		if all[i].Codes != "" {
			all[i].Codes += ", "
		}
		all[i].Codes += fmt.Sprintf("%s: %d", code, n)
	}
	slices.SortFunc(all, func(a, b calls) int {
		return cmp.Or(cmp.Compare(min(1, b.Failed), min(1, a.Failed)), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
	})
	return all
}

// received has one line for each answer that was given, those of the last hour first, the most frequent of them first.
func received(samples []sample, lastHour func(messageType, result string) int) (all []messages) {
	for _, s := range samples {
		if s.value == 0 {
			continue
		}
		m := messages{Type: s.labels["type"], Result: s.labels["result"], Total: int(s.value)}
		m.Hour = lastHour(m.Type, m.Result)
		switch m.Result {
		case "forged", "malformed", "expired", "unavailable", "unreadable", "too_large":
			m.Tone = "bad"
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b messages) int {
		return cmp.Or(cmp.Compare(b.Hour, a.Hour), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Result, b.Result))
	})
	return all
}
