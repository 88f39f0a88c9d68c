// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// maxRetries of one snapshot, as measured.
const maxRetries = 300

// Options of an Operator.
type Options struct {
	// Config is access to the API server that may do everything.
	Config *rest.Config
	// Namespace is where it looks after Rds; all if empty.
	Namespace string
	Cloud     *Cloud
	// Create makes the instance of an Rds that has none; nil leaves it without.
	Create func(ctx context.Context, rds Rds) error
	// Resync is how often every Rds is queued again: 10 s if zero, and at least 1 s.
	Resync time.Duration
	// Retry is when a snapshot that failed is tried again: 30 s if zero.
	Retry time.Duration
	// Report is called with what the operator does. It must not block.
	Report func(Act)
}

// What an operator does.
const (
	Enlarge  = "enlarge" // From and To in GB
	Resize   = "resize"  // From and To are flavors
	Create   = "create"
	Postpone = "postpone" // failed, to be tried again with the same snapshot
)

// Act is something the operator did or could not do.
type Act struct {
	Namespace, Name string
	What            string
	From, To        string
	Err             error // why it was postponed
}

// Operator applies Rds objects to the cloud while Run runs.
type Operator struct {
	Options
	client dynamic.Interface
	queue  workqueue.TypedRateLimitingInterface[*Rds]
	turn   chan struct{} // held while working, and while paused

	mu     sync.Mutex
	paused bool
	// The fault that Replay switches on, with a lock of its own: Pause waits for a turn with the other one.
	replaying sync.Mutex
	resizes   int
	every     time.Duration
	postponed map[types.NamespacedName][]*Rds
	replays   map[types.NamespacedName]*replay
}

// New returns an Operator.
func New(o Options) (*Operator, error) {
	if o.Resync == 0 {
		o.Resync = 10 * time.Second
	}
	if o.Retry == 0 {
		o.Retry = 30 * time.Second
	}
	if o.Report == nil {
		o.Report = func(Act) {}
	}
	config := rest.CopyConfig(o.Config)
	config.UserAgent = "otc-rds-operator"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("operator: client: %w", err)
	}
	return &Operator{
		Options: o, client: client, turn: make(chan struct{}, 1),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[*Rds](o.Retry, o.Retry)),
	}, nil
}

// Run works until the context ends. It may be called once.
func (o *Operator) Run(ctx context.Context) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(o.client, Resource(), o.Namespace, o.Resync, nil, nil).Informer()
	queue := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			if rds, err := snapshot(u); err == nil { // what cannot be decoded is no Rds
				o.queue.Add(rds)
			}
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: queue, UpdateFunc: func(_, changed any) { queue(changed) }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("operator: watch Rds: %w", err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { informer.RunWithContext(ctx) })
	defer context.AfterFunc(ctx, o.queue.ShutDown)()
	for o.next(ctx) {
	}
	return nil
}
