// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	byRule = "rule"
	byCert = "cert"
)

const syncInterval = 50 * time.Millisecond

// Cache holds the Rds, the RdsAutopilots and the topic as the watches last delivered them. It may be behind the API server, and
// keeps its objects while the API server is away. Callers must not modify the objects.
type Cache struct {
	*refusals
	watched    []string // namespaces, in the order of the informers
	rds        informers[*otcv1.Rds]
	autopilots informers[*autopilotv1.RdsAutopilot]
	topic      informers[*corev1.ConfigMap]
	own        string // namespace of the topic's ConfigMap
	synced     []checker
}

// checker reports whether the objects of a namespace are in the cache, or whether a callback was called for all of
// them.
type checker struct {
	cache.DoneChecker
	namespace string
	ofRds     bool
}

type object interface {
	comparable
	runtime.Object
	metav1.Object
}

// informers holds one informer per watched namespace, or a single one for all.
type informers[T object] []cache.SharedIndexInformer

func newCache(c *Cluster) (*Cache, error) {
	indexAutopilots := cache.Indexers{byRule: func(obj any) (ids []string, err error) {
		for _, r := range obj.(*autopilotv1.RdsAutopilot).Status.Alarms.Rules {
			ids = append(ids, r.AlarmID)
		}
		return ids, nil
	}, byCert: func(obj any) ([]string, error) {
		return unlessEmpty(obj.(*autopilotv1.RdsAutopilot).Status.Intake.SigningCertURL), nil
	}}
	w := &Cache{refusals: c.refusals, watched: c.namespaces, own: c.own}
	noteTopic := func(err error) { c.note(c.own, "configmaps", err) }
	topic, err := informer(listWatch(topicClient{c.core.ConfigMaps(c.own)}, noteTopic), &corev1.ConfigMap{}, nil)
	if err != nil {
		return nil, err
	}
	w.topic = append(w.topic, topic)
	w.synced = append(w.synced, checker{topic.HasSyncedChecker(), c.own, false})
	for _, ns := range c.namespaces {
		noteRds := func(err error) { c.note(ns, otcv1.Resource, err) }
		rds, err := informer(listWatch(c.rdsIn(ns), noteRds), &otcv1.Rds{}, nil)
		if err != nil {
			return nil, err
		}
		noteAutopilots := func(err error) { c.note(ns, autopilotv1.Resource, err) }
		autopilots, err := informer(listWatch(c.autopilotsIn(ns), noteAutopilots), &autopilotv1.RdsAutopilot{}, indexAutopilots)
		if err != nil {
			return nil, err
		}
		w.rds = append(w.rds, rds)
		w.autopilots = append(w.autopilots, autopilots)
		w.synced = append(w.synced, checker{autopilots.HasSyncedChecker(), ns, false}, checker{rds.HasSyncedChecker(), ns, true})
	}
	return w, nil
}

func unlessEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

type list interface {
	runtime.Object
	metav1.ListInterface
}

type lister[L list] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// listsFirst makes client-go list before it watches. Otherwise the first list is a watch that ends with a bookmark, and
// behind a proxy that drops bookmarks the caches would never be complete.
type listsFirst struct{}

func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }

// listWatch calls note with the result of every list and with that of the start of every watch. It lists page by page
// and trims each page. The API server would ignore a limit for the version that the library requests.
func listWatch[L list](client lister[L], note func(error)) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list := func(ctx context.Context, opts metav1.ListOptions) (L, error) {
				ctx, cancel := context.WithTimeout(ctx, requestTimeout) // one page
				defer cancel()
				return client.List(ctx, opts)
			}
			all := &metainternalversion.List{}
			err := eachPage(ctx, list, func(page L) {
				all.ResourceVersion = page.GetResourceVersion()
				_ = meta.EachListItem(page, func(o runtime.Object) error { // returns the error of the function, which has none
					_, _ = transform(o) // of our own kinds
					all.Items = append(all.Items, o)
					return nil
				})
			})
			note(err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			w, err := client.Watch(ctx, opts) // the reflector sets a timeout
			note(err)
			return w, err
		},
	}, listsFirst{})
}

func informer(lw cache.ListerWatcher, example runtime.Object,
	indexers cache.Indexers) (cache.SharedIndexInformer, error) {
	// No resync, because the controller's sweep checks every database.
	inf := cache.NewSharedIndexInformerWithOptions(lw, example, cache.SharedIndexInformerOptions{Indexers: indexers})
	err := errors.Join(inf.SetTransform(transform), inf.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, r *cache.Reflector, err error) {
			if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // refusals logs these once
				cache.DefaultWatchErrorHandler(ctx, r, err)
			}
		}))
	if err != nil {
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

// HasSynced reports whether all objects that existed at the start are in the cache and were passed to the callbacks. It
// does not wait for namespaces that we may not read, except if there is no other, nor for Rds without a definition.
func (w *Cache) HasSynced() bool {
	synced, refused := false, w.RefusedNamespaces()
	for _, s := range w.synced {
		if cache.IsDone(s) {
			synced = true
		} else if !slices.Contains(refused, s.namespace) && (!s.ofRds || !w.lacksRds()) {
			return false
		}
	}
	return synced
}

// WaitForSync returns once HasSynced is true. It returns an error if the context ends before.
func (w *Cache) WaitForSync(ctx context.Context) error {
	for !w.HasSynced() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the caches: %w", context.Cause(ctx))
		case <-time.After(syncInterval):
		}
	}
	return nil
}

// addHandler registers f, and returns what reports that f was called for all objects that existed at the start.
func addHandler[T object](k informers[T], namespaces []string, f func(old, new T)) (synced []checker, err error) {
	var none T
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f(none, obj.(T)) },
		UpdateFunc: func(before, after any) {
			old, new := before.(T), after.(T)
			// The same version only means that the reflector has listed again.
			if old.GetResourceVersion() != new.GetResourceVersion() {
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
	_, ofRds := any(none).(*otcv1.Rds)
	for i, inf := range k {
		registration, err := inf.AddEventHandler(handler)
		if err != nil {
			errs = append(errs, fmt.Errorf("watch: %w", err))
			continue
		}
		synced = append(synced, checker{registration.HasSyncedChecker(), namespaces[i], ofRds})
	}
	return synced, errors.Join(errs...)
}

func (k informers[T]) get(namespace, name string) (found T, ok bool) {
	key := cache.NewObjectName(namespace, name).String()
	for _, inf := range k {
		if obj, exists, err := inf.GetIndexer().GetByKey(key); err == nil && exists {
			return obj.(T), true
		}
	}
	return found, false
}

// forget removes an object from the caches. A live read has not found it, and a namespace that may not be listed has no
// events. If the watch has delivered another version since that read began, it stays.
func (k informers[T]) forget(last T) {
	for _, inf := range k {
		if obj, exists, _ := inf.GetIndexer().Get(last); exists && obj.(T) == last {
			_ = inf.GetIndexer().Delete(last) // fails only for an object without a name
		}
	}
}

func (k informers[T]) each(f func(T)) {
	for _, inf := range k {
		for _, obj := range inf.GetIndexer().List() {
			f(obj.(T))
		}
	}
}

func (k informers[T]) by(index, value string) (objects []T) {
	for _, inf := range k {
		found, _ := inf.GetIndexer().ByIndex(index, value) // it fails only for an unknown index
		for _, obj := range found {
			objects = append(objects, obj.(T))
		}
	}
	return objects
}

// Autopilot returns the RdsAutopilot from the cache, and whether there is one.
func (w *Cache) Autopilot(namespace, name string) (*autopilotv1.RdsAutopilot, bool) {
	return w.autopilots.get(namespace, name)
}

// EachAutopilot calls f with every RdsAutopilot in the cache, in no order.
func (w *Cache) EachAutopilot(f func(*autopilotv1.RdsAutopilot)) {
	w.autopilots.each(f)
}

// ByRule returns the RdsAutopilots whose status has the alarm rule.
func (w *Cache) ByRule(alarmID string) []*autopilotv1.RdsAutopilot {
	return w.autopilots.by(byRule, alarmID)
}

// SignedBefore reports whether the last stored message of any RdsAutopilot was signed with the certificate at that URL,
// and whether one was signed with any certificate.
func (w *Cache) SignedBefore(certURL string) (that, some bool) {
	for _, inf := range w.autopilots {
		urls := inf.GetIndexer().ListIndexFuncValues(byCert) // a cluster has one or two of them
		that, some = that || slices.Contains(urls, certURL), some || len(urls) > 0
	}
	return that, some
}

// OnAutopilot registers f for RdsAutopilots as OnTarget does for targets.
func (w *Cache) OnAutopilot(f func(old, new *autopilotv1.RdsAutopilot)) error {
	synced, err := addHandler(w.autopilots, w.watched, f)
	w.synced = append(w.synced, synced...)
	return err
}
