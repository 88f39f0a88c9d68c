// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// Patience is for the slowest of machines; no test waits for it.
const Patience = 10 * time.Minute

// Test is the part of *testing.T that is needed, so that the sandbox does not import testing.
type Test interface {
	apiserver.Test
	Failed() bool
	Log(args ...any)
}

// Shared is what the worlds of a test package have in common: the API server, and the binary. TestMain calls its Main.
type Shared struct {
	kube apiserver.Shared

	mu       sync.Mutex
	binaries map[bool]string // with the race detector, and without
	key      *rsa.PrivateKey // that SMN signs with: to make one costs as much as many a test
}

// Main runs the tests, stops what was started for all, and returns the exit code for TestMain.
func (s *Shared) Main(m interface{ Run() int }) int {
	root, err := apiserver.Checkout()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.kube.Options.CRDs = crds(root)
	return s.kube.Main(m)
}

// Start starts a world for one test: on Kubernetes in memory, or with KUBE=real in a namespace of its own on the API server
// of all tests. It ends with the test.
func (s *Shared) Start(t Test, o Options) *World {
	t.Helper()
	if apiserver.Real() {
		o.Cluster = s.kube.Cluster(t)
	}
	return s.StartAlone(t, o)
}

// StartAlone is Start with an API server that no other test has, for tests that stop it or change what all of it has.
func (s *Shared) StartAlone(t Test, o Options) *World {
	t.Helper()
	o.InMemory = !apiserver.Real()
	return s.start(t, o)
}

func (s *Shared) start(t Test, o Options) *World {
	t.Helper()
	ctx := Within(t)
	var err error
	if o.Binary == "" {
		if o.Binary, err = s.binary(ctx, o.Race); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if o.Cloud.SigningKey == nil {
		if o.Cloud.SigningKey, err = s.signingKey(); err != nil {
			t.Fatalf("make SMN's signing key: %v", err)
		}
	}
	w, err := Start(ctx, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("end the world: %v", err)
		}
	})
	return w
}

func (s *Shared) binary(ctx context.Context, race bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.binaries == nil {
		s.binaries = map[bool]string{}
	}
	if s.binaries[race] == "" {
		binary, err := Binary(ctx, race)
		if err != nil {
			return "", err
		}
		s.binaries[race] = binary
	}
	return s.binaries[race], nil
}

func (s *Shared) signingKey() (key *rsa.PrivateKey, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		s.key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	return s.key, err
}

// Within is a context that ends with the test, or when patience does.
func Within(t Test) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// MustServe is Serve for a test: the process is stopped at its end, and what it wrote is shown where the test fails.
func (w *World) MustServe(t Test, flags ...string) *Process {
	t.Helper()
	p, err := w.Serve(Within(t), flags...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
		defer cancel()
		if err := p.Stop(ctx); err != nil {
			t.Errorf("%v", err)
		}
		p.show(t)
	})
	return p
}

// show logs what a process wrote if the test has failed.
func (p *Process) show(t Test) {
	if t.Failed() {
		for _, l := range p.Lines() {
			t.Log(l.Raw)
		}
	}
}

// MustAdd is AddDatabase for a test.
func (w *World) MustAdd(t Test, d Database) *DB {
	t.Helper()
	db, err := w.AddDatabase(Within(t), d)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return db
}

// MustLead waits until a process leads, and returns the log line about it.
func (p *Process) MustLead(t Test) Line {
	t.Helper()
	line, err := p.WaitLine(Within(t), "it leads", func(l Line) bool { return l.Msg == "leadership" && l.Fields["leading"] == true })
	if err != nil {
		t.Fatalf("%v", err)
	}
	return line
}
