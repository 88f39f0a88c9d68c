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

// sample is a value of the registry.
type sample struct {
	labels map[string]string
	value  float64
}

// gather returns the service's own metrics by name without prefix. It skips metrics that cannot be read.
func gather(from prometheus.Gatherer) map[string][]sample {
	families, _ := from.Gather() // /metrics reports the error
	samples := map[string][]sample{}
	for _, f := range families {
		name, own := strings.CutPrefix(f.GetName(), "rds_autopilot_")
		if !own {
			continue
		}
		for _, m := range f.GetMetric() {
			// A metric is a gauge or a counter, and the other value is 0.
			s := sample{labels: map[string]string{}, value: m.GetGauge().GetValue() + m.GetCounter().GetValue()}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			samples[name] = append(samples[name], s)
		}
	}
	return samples
}

// replica describes the process that serves the page.
type replica struct {
	Leads            bool
	Leader           string // the pod that leads; empty if unknown
	CloudAway        bool   // it refused the credentials or was never reached
	LastSweep        moment // empty on a replica that has never led
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

// calls counts the calls to an operation of a cloud service.
type calls struct {
	Service, Operation string
	Good               int
	Failed             int
	Codes              string // status codes of the failed calls, with their number
}

// messages counts the messages of a type with the same result.
type messages struct {
	Type, Result string
	Total        int // since the start
	Tone         string
}

// CloudError is the error of the newest failed request to a cloud service.
type CloudError struct {
	Service, Text string
	Time          time.Time
}

// failedCall is a row of the table of errors.
type failedCall struct {
	Service, Text string
	Time          moment
}

type health struct {
	Replica  replica
	Calls    []calls
	Errors   []failedCall
	Messages []messages
}

func (p *pages) showHealth(_ *http.Request, v *view) answer {
	h := health{Replica: v.replica(), Calls: cloudCalls(v.samples["cloud_requests_total"]),
		Messages: received(v.samples["notifications_total"])}
	if p.CloudErrors != nil {
		for _, e := range p.CloudErrors() {
			h.Errors = append(h.Errors, failedCall{e.Service, e.Text, v.moment(e.Time)})
		}
	}
	return answer{http.StatusOK, p.health, "./", "Health of this replica", h}
}

// cloudCalls returns one line per called operation, failed ones first.
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
		return cmp.Or(cmp.Compare(min(1, b.Failed), min(1, a.Failed)), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Operation, b.Operation))
	})
	return all
}

// received returns one line per type and result, the most frequent first.
func received(samples []sample) (all []messages) {
	for _, s := range samples {
		if s.value == 0 {
			continue
		}
		m := messages{Type: s.labels["type"], Result: s.labels["result"], Total: int(s.value)}
		switch m.Result {
		case "forged", "malformed", "expired", "incomplete", "limited", "unavailable", "unreadable", "too_large":
			m.Tone = "bad"
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b messages) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Result, b.Result))
	})
	return all
}
