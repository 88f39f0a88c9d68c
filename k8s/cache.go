// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	byTopic    = "topic"
	byUID      = "uid" // the part that is in the topic's name
	byCert     = "cert"
	byPath     = "path"
	byInstance = "instance"
)

// Cache holds the Rds and RdsAutopilots as the watches last delivered them. It may be behind the API server, and
// keeps its objects while the API server is away. Callers must not modify the objects.
type Cache struct {
	rds        informers[*otcv1.Rds]
	autopilots informers[*autopilotv1.RdsAutopilot]
	synced     []cache.DoneChecker
	rdsLater   bool // the watch of Rds may start much later, so nothing waits for it
}

type object interface {
	comparable
	runtime.Object
	metav1.Object
}

// informers holds one informer per watched namespace, or a single one for all.
type informers[T object] []cache.SharedIndexInformer

func newCache(c *Cluster) (*Cache, error) {
	indexRds := cache.Indexers{byInstance: func(obj any) ([]string, error) {
		return unlessEmpty(obj.(*otcv1.Rds).Status.ID), nil
	}}
	indexAutopilots := cache.Indexers{byTopic: func(obj any) ([]string, error) {
		return unlessEmpty(obj.(*autopilotv1.RdsAutopilot).Status.Alarms.TopicURN), nil
	}, byUID: func(obj any) ([]string, error) {
		return unlessEmpty(obj.(*autopilotv1.RdsAutopilot).ShortUID()), nil
	}, byCert: func(obj any) ([]string, error) {
		return unlessEmpty(obj.(*autopilotv1.RdsAutopilot).Status.Intake.SigningCertURL), nil
	}, byPath: func(obj any) ([]string, error) {
		return pathsOf(obj.(*autopilotv1.RdsAutopilot)), nil
	}, byInstance: func(obj any) ([]string, error) {
		return unlessEmpty(obj.(*autopilotv1.RdsAutopilot).Spec.InstanceID), nil
	}}
	w := &Cache{rdsLater: c.LacksRds()}
	for _, ns := range c.namespaces {
		rds, err := informer(listWatch(c.rdsIn(ns)), &otcv1.Rds{}, indexRds)
		if err != nil {
			return nil, err
		}
		autopilots, err := informer(listWatch(c.autopilotsIn(ns)), &autopilotv1.RdsAutopilot{}, indexAutopilots)
		if err != nil {
			return nil, err
		}
		w.rds = append(w.rds, rds)
		w.autopilots = append(w.autopilots, autopilots)
		w.synced = append(w.synced, autopilots.HasSyncedChecker())
		if !w.rdsLater {
			w.synced = append(w.synced, rds.HasSyncedChecker())
		}
	}
	return w, nil
}

func unlessEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func listWatch[L runtime.Object](client lister[L]) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout) // one page
			defer cancel()
			return client.List(ctx, opts)
		},
		WatchFuncWithContext: client.Watch, // the reflector sets a timeout
	}
}

func informer(lw cache.ListerWatcher, example runtime.Object,
	indexers cache.Indexers) (cache.SharedIndexInformer, error) {
	// No resync, because the controller's sweep checks every database.
	inf := cache.NewSharedIndexInformerWithOptions(lw, example, cache.SharedIndexInformerOptions{Indexers: indexers})
	if err := inf.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("set up a watch: %w", err)
	}
	return inf, nil
}

func (k informers[T]) run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, inf := range k {
		wg.Go(func() { inf.RunWithContext(ctx) })
	}
	wg.Wait()
}

// HasSynced reports whether all objects that existed at the start are in the cache and were passed to the callbacks.
func (w *Cache) HasSynced() bool {
	for _, s := range w.synced {
		if !cache.IsDone(s) {
			return false
		}
	}
	return true
}

// WaitForSync returns once HasSynced is true. It returns an error if the context ends before.
func (w *Cache) WaitForSync(ctx context.Context) error {
	if !cache.WaitFor(ctx, "", w.synced...) {
		return fmt.Errorf("wait for the caches: %w", context.Cause(ctx))
	}
	return nil
}

// addHandler registers f, and returns what reports that f was called for all objects that existed at the start.
func addHandler[T object](k informers[T], f func(old, new T)) (synced []cache.DoneChecker, err error) {
	var none T
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f(none, obj.(T)) },
		UpdateFunc: func(before, after any) {
			old, new := before.(T), after.(T)
			if old.GetResourceVersion() != new.GetResourceVersion() { // the same version only means that the reflector has listed again
				f(old, new)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if old, ok := obj.(T); ok {
				f(old, none)
			}
		},
	}
	var errs []error
	for _, inf := range k {
		registration, err := inf.AddEventHandler(handler)
		if err != nil {
			errs = append(errs, fmt.Errorf("watch: %w", err))
			continue
		}
		synced = append(synced, registration.HasSyncedChecker())
	}
	return synced, errors.Join(errs...)
}

// get returns the object with that name.
func (k informers[T]) get(namespace, name string) (found T, ok bool) {
	key := cache.NewObjectName(namespace, name).String()
	for _, inf := range k {
		if obj, exists, err := inf.GetIndexer().GetByKey(key); err == nil && exists {
			return obj.(T), true
		}
	}
	return found, false
}

func (k informers[T]) each(f func(T)) {
	for _, inf := range k {
		for _, obj := range inf.GetIndexer().List() {
			f(obj.(T))
		}
	}
}

// by returns the objects that have the value in an index.
func (k informers[T]) by(index, value string) (objects []T) {
	for _, inf := range k {
		found, _ := inf.GetIndexer().ByIndex(index, value) // it fails only for an unknown index
		for _, obj := range found {
			objects = append(objects, obj.(T))
		}
	}
	return objects
}
