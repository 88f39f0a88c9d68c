// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"net/http"
	"strings"
	"time"
)

const (
	// replicasKept is how long the list of replicas is cached: as long as the script waits between two refreshes.
	replicasKept = 10 * time.Second
	// replicasPatience is how long the health page waits for the API server.
	replicasPatience = 2 * time.Second
)

// Replica is a pod of the service.
type Replica struct {
	Pod             string
	Addresses       []string
	Ready, Stopping bool
}

// pod is a row of the table of replicas.
type pod struct {
	Name, Addresses, State, Tone string
	Leads                        bool
}

func (p *pages) askReplicas(ctx context.Context, _, _ string) ([]Replica, error) {
	return p.Replicas(ctx)
}

// serveHealth waits for the API server before it takes the slot for rendering, so that it does not block other pages.
func (p *pages) serveHealth(w http.ResponseWriter, r *http.Request) {
	replicas, err := p.replicas.of(r.Context(), "", "", replicasPatience)
	p.serve(func(_ *http.Request, v *view) answer { return p.showHealth(v, replicas, err) })(w, r)
}

func (v *view) pods(replicas []Replica) (all []pod) {
	for _, r := range replicas {
		n := pod{Name: r.Pod, Addresses: strings.Join(r.Addresses, ", "), State: "ready", Tone: "good", Leads: r.Pod != "" &&
			r.Pod == v.leader}
		switch {
		case r.Stopping:
			n.State, n.Tone = "stopping", "busy"
		case !r.Ready:
			n.State, n.Tone = "not ready", "bad"
		}
		all = append(all, n)
	}
	return all
}
