// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// crdInterval is a minute because a new CRD is not urgent.
const crdInterval = time.Minute

// LacksRds reports whether the CRD of the Rds was not installed when the service last looked for it. It is true only
// with Options.RdsOptional.
func (c *Cluster) LacksRds() bool { return c.rdsMissing.Load() }

// noRds reports whether a request for an Rds failed because the CRD is not installed. Once the CRD was there, a 404 is
// an error, so that a fault never looks like the deletion of all databases.
func (c *Cluster) noRds(err error) bool { return apierrors.IsNotFound(err) && c.LacksRds() }

// awaitRds returns once the API server serves Rds. It returns false if the context ends before.
func (c *Cluster) awaitRds(ctx context.Context) bool {
	if !c.LacksRds() {
		return true
	}
	tick := time.NewTicker(crdInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if c.servesRds(ctx) {
			c.log.Info("the CRD of the Rds is installed: watching Rds")
			c.rdsMissing.Store(false)
			return true
		}
	}
}

// servesRds reports whether the API server lists Rds. Discovery needs no rights, but lags behind a new CRD.
func (c *Cluster) servesRds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return slices.ContainsFunc(c.namespaces, func(ns string) bool {
		_, err := c.rdsIn(ns).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil
	})
}
