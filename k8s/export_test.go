// SPDX-License-Identifier: Apache-2.0

package k8s

import otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"

// EachRds calls f with every Rds as the cache holds it.
func (c *Cluster) EachRds(f func(*otcv1.Rds)) { c.rds.each(f) }
