// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/mcsps/rds-autopilot/internal/shorten"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	byRule = "rule"
	byCert = "cert"
)

const syncInterval = 50 * time.Millisecond

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

func (c *Cluster) addInformers() {
	indexers := cache.Indexers{byRule: func(obj any) (ids []string, err error) {
		for _, r := range obj.(*autopilotv1.RdsAutopilot).Status.Alarms.Rules {
			ids = append(ids, r.AlarmID)
		}
		return ids, nil
	}, byCert: func(obj any) ([]string, error) {
		return []string{obj.(*autopilotv1.RdsAutopilot).Status.Intake.SigningCertURL}, nil // empty before the first message
	}}
	topic := newInformer(c, c.own, "configmaps", topicClient{c.core.ConfigMaps(c.own)}, &corev1.ConfigMap{}, nil)
	c.topic = append(c.topic, topic)
	c.synced = append(c.synced, checker{topic.HasSyncedChecker(), c.own, false})
	for _, ns := range c.namespaces {
		rds := newInformer(c, ns, otcv1.Resource, c.rdsIn(ns), &otcv1.Rds{}, nil)
		autopilots := newInformer(c, ns, autopilotv1.Resource, c.autopilotsIn(ns), &autopilotv1.RdsAutopilot{}, indexers)
		c.rds = append(c.rds, rds)
		c.autopilots = append(c.autopilots, autopilots)
		c.synced = append(c.synced, checker{autopilots.HasSyncedChecker(), ns, false}, checker{rds.HasSyncedChecker(), ns, true})
	}
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

// listPage is how many objects a list requests at a time. Reading and decoding allocate three times the size of
// the answer, and an object may have 1.5 MB, so a page costs about 20 MB at most.
const listPage = 4

// listAll lists page by page and trims each page. The API server would ignore a limit for the version that the library
// requests.
func listAll[L list](ctx context.Context, client lister[L]) (*metainternalversion.List, error) {
	all := &metainternalversion.List{}
	for opts := (metav1.ListOptions{Limit: listPage}); ; {
		ofPage, cancel := context.WithTimeout(ctx, requestTimeout)
		page, err := client.List(ofPage, opts)
		cancel()
		if err != nil {
			return all, err
		}
		all.ResourceVersion = page.GetResourceVersion()
		_ = meta.EachListItem(page, func(o runtime.Object) error { // returns the error of the function, which has none
			_, _ = transform(o)
			all.Items = append(all.Items, o)
			return nil
		})
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return all, nil
		}
	}
}

// newInformer returns an informer that notes the result of every list, and of the start of every watch.
func newInformer[L list](c *Cluster, namespace, resource string, client lister[L], example runtime.Object,
	indexers cache.Indexers) cache.SharedIndexInformer {
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			all, err := listAll(ctx, client)
			err = c.proven(ctx, resource, err)
			c.note(namespace, resource, err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			w, err := client.Watch(ctx, opts) // the reflector sets a timeout
			err = c.proven(ctx, resource, err)
			c.note(namespace, resource, err)
			return w, err
		},
	}, listsFirst{})
	// No resync, because the controller's sweep checks every database.
	inf := cache.NewSharedIndexInformerWithOptions(lw, example, cache.SharedIndexInformerOptions{Indexers: indexers})
	_ = inf.SetTransform(transform) // like the next call, it fails only for an informer that runs
	_ = inf.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // refusals logs these once
			cache.DefaultWatchErrorHandler(ctx, r, err)
		}
	})
	return inf
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
func (c *Cluster) HasSynced() bool {
	synced, refused := false, c.RefusedNamespaces()
	for _, s := range c.synced {
		if cache.IsDone(s) {
			synced = true
		} else if !slices.Contains(refused, s.namespace) && (!s.ofRds || !c.lacksRds()) {
			return false
		}
	}
	return synced
}

// WaitForSync returns once HasSynced is true. It returns an error if the context ends before.
func (c *Cluster) WaitForSync(ctx context.Context) error {
	for !c.HasSynced() {
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
func (c *Cluster) Autopilot(namespace, name string) (*autopilotv1.RdsAutopilot, bool) {
	return c.autopilots.get(namespace, name)
}

// EachAutopilot calls f with every RdsAutopilot in the cache, in no order.
func (c *Cluster) EachAutopilot(f func(*autopilotv1.RdsAutopilot)) {
	c.autopilots.each(f)
}

// ByRule returns the RdsAutopilots whose status has the alarm rule.
func (c *Cluster) ByRule(alarmID string) []*autopilotv1.RdsAutopilot {
	return c.autopilots.by(byRule, alarmID)
}

// SignedBefore reports whether the last stored message of any RdsAutopilot was signed with the certificate at that URL,
// and whether one was signed with any certificate.
func (c *Cluster) SignedBefore(certURL string) (that, some bool) {
	for _, inf := range c.autopilots {
		for _, url := range inf.GetIndexer().ListIndexFuncValues(byCert) { // a cluster has one or two of them
			that, some = that || url == certURL, some || url != ""
		}
	}
	return that, some
}

// OnAutopilot registers f for RdsAutopilots as OnTarget does for targets.
func (c *Cluster) OnAutopilot(f func(old, new *autopilotv1.RdsAutopilot)) error {
	synced, err := addHandler(c.autopilots, c.namespaces, f)
	c.synced = append(c.synced, synced...)
	return err
}

// maxID is longer than any id or flavor of the cloud. The schema of the Rds has no limit, and whoever may write one
// namespace must not be able to end the process by its memory.
const maxID = 128

// trim drops the metadata that the service does not read. It lists the fields that stay, because kubectl copies the
// whole Rds into an annotation, passwords included, and other tools may copy it elsewhere.
func trim(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		Generation:        m.Generation,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
	}
}

func trimRds(rds *otcv1.Rds) {
	trim(&rds.ObjectMeta)
	rds.Spec.Endpoint, rds.Spec.FlavorRef = shorten.To(rds.Spec.Endpoint, maxID), shorten.To(rds.Spec.FlavorRef, maxID)
	rds.Unreadable = shorten.To(rds.Unreadable, maxID)
	rds.Status = otcv1.Status{ID: shorten.To(rds.Status.ID, maxID)}
}

// trimAutopilot keeps spec and status: the schema limits the spec, and only the service may write the status. The owner
// shows whether a deleted object was garbage of a former Rds.
func trimAutopilot(a *autopilotv1.RdsAutopilot) {
	owners := a.OwnerReferences
	trim(&a.ObjectMeta)
	for _, o := range owners {
		if o.Kind == otcv1.Kind {
			a.OwnerReferences = []metav1.OwnerReference{{Kind: o.Kind, UID: o.UID}}
		}
	}
}

// transform trims the objects of our kinds.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *otcv1.Rds:
		trimRds(o)
	case *autopilotv1.RdsAutopilot:
		trimAutopilot(o)
	case *corev1.ConfigMap: // that of the topic
		trim(&o.ObjectMeta)
	}
	return obj, nil
}

// proven returns the error of a list of Rds. A 404 proves that they have no definition only if the API server's own list
// of groups lacks theirs: a proxy, or a definition without our version, answers 404 as well.
func (c *Cluster) proven(ctx context.Context, resource string, err error) error {
	if resource != otcv1.Resource || !apierrors.IsNotFound(err) {
		return err
	}
	var all metav1.APIGroupList
	raw, readErr := c.rdsAPI.Get().AbsPath("/apis").DoRaw(ctx)
	hasGroup := func(g metav1.APIGroup) bool { return g.Name == otcv1.Group }
	if readErr == nil && json.Unmarshal(raw, &all) == nil && all.Kind == "APIGroupList" && !slices.ContainsFunc(all.Groups, hasGroup) {
		return err
	}
	return fmt.Errorf("the list of API groups does not show that %s.%s has no definition: %s", resource, otcv1.Group, shorten.Foreign(err.Error()))
}

// refusals holds the lists that the API server refuses. A Role belongs to its namespace, so it goes when the namespace is
// deleted. The other namespaces must not depend on that. Without an operator there is no definition of Rds, and what
// Terraform has made must not depend on that.
type refusals struct {
	log *zap.Logger

	mu  sync.Mutex
	now map[[2]string]error // by namespace and resource
}

// note records the result of a list, and logs when it becomes a refusal or none any more.
func (r *refusals) note(namespace, resource string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, fields := [2]string{namespace, resource}, []zap.Field{zap.String("namespace", namespace), zap.String("resource", resource)}
	was := r.now[list]
	switch {
	case apierrors.IsNotFound(err):
		if r.now[list] = err; was == nil {
			r.log.Warn("the resource has no definition. Without Rds, only each RdsAutopilot with spec.instanceID is managed. With an operator: kubectl apply -f deploy/crds/rds.yaml", fields...)
		}
	case apierrors.IsForbidden(err) && was == nil:
		r.now[list] = err
		r.log.Warn("the API server refuses to list a watched namespace: nothing in it is managed. Restore its Role and RoleBinding, or remove it from --watch-namespaces",
			append(fields, zap.Error(wrapError(err, "list")))...)
	case err == nil && was != nil:
		delete(r.now, list)
		r.log.Info("the namespace is readable again", fields...)
	}
}

// lacksRds reports whether there was no definition of Rds when we last listed a namespace.
func (r *refusals) lacksRds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for list, err := range r.now {
		if list[1] == otcv1.Resource && apierrors.IsNotFound(err) {
			return true
		}
	}
	return false
}

// RefusedNamespaces returns the watched namespaces that the API server did not let us list when we last tried, sorted.
func (r *refusals) RefusedNamespaces() (namespaces []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for list, err := range r.now {
		if apierrors.IsForbidden(err) {
			namespaces = append(namespaces, list[0])
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}
