// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// probeInterval is 5 seconds so that a replica leaves the Service before SMN has spent its retries on it.
	probeInterval = 5 * time.Second
	// probeRetry is one second so that a single slow answer is checked again at once.
	probeRetry = time.Second
	// probeTimeout is 3 seconds because the receiver must answer a sender within 4 seconds.
	probeTimeout = 3 * time.Second
	// toleratedFailures is how many failed probes in a row do not make the replica unready.
	toleratedFailures = 1
)

// Reachable reports whether the API server has answered the last probes. It is true before Run, because Connect has
// just asked. The watches do not show this: they stay open while the API server hangs or its etcd is down.
func (c *Cluster) Reachable() bool { return !c.unreachable.Load() }

// probeLoop lists one RdsAutopilot at an interval. This needs the same parts as storing a notification: our rights,
// our resource and etcd.
func (c *Cluster) probeLoop(ctx context.Context) {
	failures := 0
	for {
		pause := probeInterval
		err := c.probe(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			if c.unreachable.Swap(false) {
				c.log.Info("the API server answers again")
			}
		default:
			failures++
			pause = probeRetry
			if failures > toleratedFailures && !c.unreachable.Swap(true) {
				c.log.Error("the API server does not answer: no message can be stored", zap.Error(err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// probe returns nil if the API server answers, even with a refusal: that is about one namespace, or about our rights.
// It asks the next namespace after a 403, because the API server answers that without etcd.
func (c *Cluster) probe(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, ns := range c.namespaces {
		// Only the fact of an answer counts, so it is not decoded.
		err = c.ownAPI.Get().NamespaceIfScoped(ns, ns != metav1.NamespaceAll).Resource(autopilotv1.Resource).
			VersionedParams(&metav1.ListOptions{Limit: 1}, c.codec).Do(ctx).Error()
		if !apierrors.IsForbidden(err) {
			break
		}
	}
	status := apierrors.APIStatus(nil)
	if isRefused(err) && errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
		return nil
	}
	return wrapError(err, "list RdsAutopilots")
}
