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

// Patience ends a test that hangs. It is long enough for a slow machine.
const Patience = 10 * time.Minute

// Test is the part of *testing.T that is needed, so that the sandbox does not import testing.
type Test interface {
	apiserver.Test
	Failed() bool
	Log(args ...any)
}

// Shared holds the API server and the binary for the worlds of a test package. TestMain calls its Main.
type Shared struct {
	kube apiserver.Shared

	mu       sync.Mutex
	binaries map[bool]string // with the race detector, and without
	key      *rsa.PrivateKey // of SMN; its generation takes as long as many tests
}

// Main runs the tests, stops the shared API server, and returns the exit code for TestMain.
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

// StartAlone is Start with an API server of its own, for tests that stop it or change cluster-wide objects.
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

// Within returns a context that ends with the test, or after Patience.
func Within(t Test) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// MustServe is Serve for a test. The end of the test stops the process, and logs its lines if the test has failed.
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

// show logs the lines of a process if the test has failed.
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
