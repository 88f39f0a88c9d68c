// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	probeEvery      = 5 * time.Second
	probeAgainAfter = time.Second     // after a probe that failed
	probeTimeout    = 3 * time.Second // for an answer: what takes longer is of no use to a sender that waits
	probeFailures   = 1               // in a row that do not count
)

// Reachable reports whether the API server answered lately. It is true before Run, for Connect has asked.
func (c *Cluster) Reachable() bool { return !c.unreachable.Load() }

// probeLoop asks again and again for what storing a notification needs as well: our rights, our resource, and etcd behind it.
func (c *Cluster) probeLoop(ctx context.Context) {
	failures := 0
	for {
		pause := probeEvery
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
			pause = probeAgainAfter
			if failures > probeFailures && !c.unreachable.Swap(true) {
				c.log.Error("the API server does not answer: nothing can be stored", zap.Error(err))
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (c *Cluster) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// Whether there is an answer counts, not what is in it: nothing is decoded.
	err := c.ownAPI.Get().NamespaceIfScoped(c.namespaces[0], c.namespaces[0] != metav1.NamespaceAll).Resource(autopilotv1.Resource).
		VersionedParams(&metav1.ListOptions{Limit: 1}, c.codec).Do(ctx).Error()
	return wrapError(err, "list RdsAutopilots")
}
