// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/test/world"
)

// replaceAfter is the pause before a replica that has ended is replaced.
const replaceAfter = 2 * time.Second

// replicas are the processes of the service. One that ends is replaced, as Kubernetes does.
type replicas struct {
	wanted int

	mu      sync.Mutex
	running []*world.Process
	leader  *world.Process // nil if it is not known
}

// start starts all of them, and keeps them running until the context ends.
func (s *replicas) start(ctx context.Context, w *world.World, running *sync.WaitGroup) error {
	for range s.wanted {
		p, err := s.add(ctx, w)
		if err != nil {
			return err
		}
		running.Go(func() {
			for ctx.Err() == nil {
				_, _ = p.Wait(ctx) // until it ends, or the sandbox does
				s.remove(p)
				select {
				case <-time.After(replaceAfter):
				case <-ctx.Done():
					return
				}
				if next, err := s.add(ctx, w); err == nil { // else once more
					p = next
				}
			}
		})
	}
	return nil
}

func (s *replicas) add(ctx context.Context, w *world.World) (*world.Process, error) {
	p, err := w.Serve(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, p)
	return p, nil
}

func (s *replicas) remove(p *world.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(q *world.Process) bool { return q == p })
	if s.leader == p {
		s.leader = nil
	}
}

// seen stores which replica leads, from its log.
func (s *replicas) seen(p *world.Process, l world.Line) {
	if l.Msg != "leadership" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.Fields["leading"] == true:
		s.leader = p
	case s.leader == p:
		s.leader = nil
	}
}

// killLeader kills the leader without a chance to clean up, as a failing machine does.
func (s *replicas) killLeader() error {
	s.mu.Lock()
	p := s.leader
	s.leader = nil
	s.mu.Unlock()
	if p == nil {
		return errors.New("nobody leads at the moment")
	}
	return p.Kill()
}

// any returns the leader if there is one, else another replica, or nil if none runs.
func (s *replicas) any() *world.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader != nil || len(s.running) == 0 {
		return s.leader
	}
	return s.running[0]
}

// proxy serves the status page of any replica, so that its address stays the same while replicas come and go.
func (s *replicas) proxy() http.Handler {
	transport := &http.Transport{ResponseHeaderTimeout: time.Minute, DisableKeepAlives: true} // a replica may end at any time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := s.any()
		if p == nil {
			http.Error(w, "no replica of rds-autopilot runs at the moment; try again", http.StatusServiceUnavailable)
			return
		}
		admin, err := url.Parse(p.AdminURL)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		forward := &httputil.ReverseProxy{
			Transport: transport, ErrorLog: zap.NewStdLog(zap.NewNop()), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(admin) },
		}
		forward.ServeHTTP(w, r)
	})
}
