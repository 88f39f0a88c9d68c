// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// crdInterval is 10 seconds because a new CRD is not urgent, and one request in that time costs little.
const crdInterval = 10 * time.Second

// LacksRds reports whether the CRD of the Rds was not installed at the last request for an Rds. It is true only with
// Options.RdsOptional.
func (c *Cluster) LacksRds() bool { return c.rdsMissing.Load() }

// noRds reports whether a request for an Rds failed because the CRD is not installed yet. Once the API server has
// served the resource, a 404 is an error again, so that a fault never looks like the deletion of all databases.
func (c *Cluster) noRds(err error) bool {
	if err == nil && c.rdsMissing.Swap(false) {
		c.log.Info("the CRD of the Rds is installed: watching Rds")
	}
	return apierrors.IsNotFound(err) && c.rdsMissing.Load()
}

// rdsListWatch lists and watches the Rds of a namespace. While the CRD is not installed, it lists none, and its watch
// asks for the CRD at an interval.
func (c *Cluster) rdsListWatch(namespace string) cache.ListerWatcher {
	inner := cache.ToListerWatcherWithContext(listWatch(c.rdsIn(namespace)))
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, opts)
			if c.noRds(err) {
				return &otcv1.RdsList{}, nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, opts)
			// The reflector lists after a failed watch with initial events, and then watches without them.
			if c.noRds(err) && opts.SendInitialEvents == nil {
				return c.watchForCRD(ctx, namespace), nil
			}
			return w, err
		},
	}
}

// watchForCRD returns a watch that expires as soon as the API server serves Rds, so that the reflector lists them.
func (c *Cluster) watchForCRD(ctx context.Context, namespace string) watch.Interface {
	events := make(chan watch.Event)
	w := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		tick := time.NewTicker(crdInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.StopChan():
				return
			case <-tick.C:
			}
			if !c.servesRds(ctx, namespace) {
				continue
			}
			select {
			case <-ctx.Done():
			case <-w.StopChan():
			case events <- watch.Event{Type: watch.Error, Object: &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
				Message: "the CRD of the Rds is installed",
			}}:
			}
			return
		}
	}()
	return w
}

// servesRds reports whether the API server lists Rds. Discovery needs no rights, but lags behind a new CRD.
func (c *Cluster) servesRds(ctx context.Context, namespace string) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := c.rdsIn(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}
