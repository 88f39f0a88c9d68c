// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"net/http"
	"strings"
	"time"
)

const (
	replicasKept     = 10 * time.Second
	replicasPatience = 2 * time.Second // that the page of the health waits for the API server
)

// Replica is a pod of the service, as the API server knows it.
type Replica struct {
	Pod             string
	Addresses       []string
	Ready, Stopping bool
}

// pod is a Replica as people read it.
type pod struct {
	Name, Addresses, State, Tone string
	Leads                        bool
}

func (p *pages) askReplicas(ctx context.Context, _, _ string) ([]Replica, error) {
	return p.Replicas(ctx)
}

// serveHealth waits for the API server before the page is put together, so that others see theirs meanwhile.
func (p *pages) serveHealth(w http.ResponseWriter, r *http.Request) {
	replicas, err := p.replicas.of(r.Context(), "", "", replicasPatience)
	p.serve(func(_ *http.Request, v *view) answer { return p.showHealth(v, replicas, err) })(w, r)
}

func (v *view) pods(replicas []Replica) (all []pod) {
	for _, r := range replicas {
		n := pod{Name: r.Pod, Addresses: strings.Join(r.Addresses, ", "), State: "ready", Tone: "good", Leads: r.Pod != "" && r.Pod == v.leader}
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
