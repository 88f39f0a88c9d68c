// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"cmp"
	"net/url"
	"slices"

	"k8s.io/client-go/tools/cache"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Autopilot returns the RdsAutopilot from the cache, and whether there is one.
func (w *Cache) Autopilot(namespace, name string) (*autopilotv1.RdsAutopilot, bool) {
	return w.autopilots.get(namespace, name)
}

// EachAutopilot calls f with every RdsAutopilot in the cache, in no order.
func (w *Cache) EachAutopilot(f func(*autopilotv1.RdsAutopilot)) {
	w.autopilots.each(f)
}

// ByTopic returns the RdsAutopilots whose status has the topic's URN.
func (w *Cache) ByTopic(topicURN string) []*autopilotv1.RdsAutopilot {
	return w.autopilots.by(byTopic, topicURN)
}

// SignedBefore reports whether the last stored message of any RdsAutopilot was signed with the certificate at that URL.
func (w *Cache) SignedBefore(certURL string) bool {
	return slices.ContainsFunc(w.autopilots, func(inf cache.SharedIndexInformer) bool {
		return slices.Contains(inf.GetIndexer().ListIndexFuncValues(byCert), certURL) // a cluster has one or two such URLs
	})
}

// Delivers reports whether SMN delivers to that path of the public URL or of a former one.
func (w *Cache) Delivers(path string) bool {
	return slices.ContainsFunc(w.autopilots, func(inf cache.SharedIndexInformer) bool {
		return slices.Contains(inf.GetIndexer().ListIndexFuncValues(byPath), path) // rarely more than two
	})
}

// pathsOf returns the paths of the URLs to which SMN delivers.
func pathsOf(a *autopilotv1.RdsAutopilot) (paths []string) {
	for _, endpoint := range a.Status.Alarms.Endpoints {
		if u, err := url.Parse(endpoint); err == nil {
			paths = append(paths, cmp.Or(u.Path, "/"))
		}
	}
	return paths
}

// OnAutopilot registers f for RdsAutopilots as OnTarget does for targets.
func (w *Cache) OnAutopilot(f func(old, new *autopilotv1.RdsAutopilot)) error {
	synced, err := addHandler(w.autopilots, w.watched, f)
	w.synced = append(w.synced, synced...)
	return err
}
