// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// maxRetries is how often the archived operator retries a snapshot.
const maxRetries = 300

// Options configure an Operator.
type Options struct {
	Config    *rest.Config // of an account with all rights
	Namespace string       // whose Rds it applies; empty means all namespaces
	Cloud     *Cloud
	Resync    time.Duration // until every Rds is queued again; 10 seconds if zero, at least a second
	Retry     time.Duration // until a failed snapshot is retried; 30 seconds if zero
}

// Operator applies Rds objects to the cloud while Run runs.
type Operator struct {
	Options
	client dynamic.Interface
	queue  workqueue.TypedRateLimitingInterface[*Rds]
	turn   chan struct{} // full while a snapshot is applied, and while paused

	mu     sync.Mutex
	paused bool
}

// New returns an Operator.
func New(o Options) (*Operator, error) {
	if o.Resync == 0 {
		o.Resync = 10 * time.Second
	}
	if o.Retry == 0 {
		o.Retry = 30 * time.Second
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

// Run applies snapshots until the context ends. It may be called once.
func (o *Operator) Run(ctx context.Context) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(o.client, Resource(), o.Namespace, o.Resync, nil, nil).Informer()
	enqueue := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			if rds, err := snapshot(u); err == nil { // the API server stores no Rds that cannot be decoded
				o.queue.Add(rds)
			}
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, changed any) { enqueue(changed) }}
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
