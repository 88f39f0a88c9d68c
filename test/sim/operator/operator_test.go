// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// bench is an operator on Kubernetes in memory and a simulated cloud whose clock stands still.
type bench struct {
	t        *testing.T
	cloud    *simcloud.Cloud
	operator *Operator
	objects  dynamic.ResourceInterface
	name     string // of the one database
	id       string // of its instance
	acts     chan Act

	mu  sync.Mutex
	now time.Time
}

func newBench(t *testing.T, spec string, in simcloud.Instance) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{t: t, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), acts: make(chan Act, 1000)}
	b.name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(t.Name()))
	var err error
	if b.cloud, err = simcloud.Start(simcloud.Options{Now: b.clock}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	connection, err := Connect(b.cloud.Env(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := simkube.New(simkube.Options{CRDs: []string{"../../../deploy/crds/rds.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	const namespace = metav1.NamespaceDefault
	b.operator, err = New(Options{
		Config: cluster.Config(), Namespace: namespace, Cloud: connection, Retry: 20 * time.Millisecond, Resync: time.Hour,
		Report: func(a Act) { b.acts <- a },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.objects = b.operator.client.Resource(Resource()).Namespace(namespace)
	if in.Flavor != "" {
		in.Name = b.name
		made, err := b.cloud.AddInstance(in)
		if err != nil {
			t.Fatal(err)
		}
		b.id = made.ID
	}
	object := &unstructured.Unstructured{}
	body, err := yaml.YAMLToJSON([]byte("apiVersion: otc.mcsps.de/v1alpha1\nkind: Rds\nmetadata: {name: " + b.name + "}\nspec: " + spec))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	if _, err := b.objects.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// pass lets jobs in the cloud end.
func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) object() *unstructured.Unstructured {
	b.t.Helper()
	u, err := b.objects.Get(b.t.Context(), b.name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return u
}

func (b *bench) snapshot() *Rds {
	b.t.Helper()
	rds, err := snapshot(b.object())
	if err != nil {
		b.t.Fatal(err)
	}
	return rds
}

func (b *bench) patch(spec string) {
	b.t.Helper()
	_, err := b.objects.Patch(b.t.Context(), b.name, types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

// work works on a snapshot and checks whether it is to be tried again.
func (b *bench) work(snap *Rds, again bool) {
	b.t.Helper()
	if err := b.operator.work(b.t.Context(), snap); (err != nil) != again {
		b.t.Fatalf("worked with error %v, want one: %v", err, again)
	}
}

func (b *bench) instance() simcloud.Instance {
	b.t.Helper()
	in, ok := b.cloud.Instance(b.id)
	if !ok {
		b.t.Fatal("the instance is gone")
	}
	return in
}

func (b *bench) setStatus(status string) {
	b.t.Helper()
	if err := b.cloud.ChangeInstance(b.id, func(in *simcloud.Instance) { in.Status = status }); err != nil {
		b.t.Fatal(err)
	}
}

// run starts the operator for the rest of the test.
func (b *bench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.operator.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
}

// next returns the next act of a kind.
func (b *bench) next(what string) Act {
	b.t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case a := <-b.acts:
			if a.What == what {
				return a
			}
		case <-limit:
			b.t.Fatalf("no act %s", what)
		}
	}
}
