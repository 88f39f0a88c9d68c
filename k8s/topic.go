// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// searchesPerSec limits the live lists for topics whose name does not identify one object, so that invented topics
// cannot load the API server.
const searchesPerSec = 2

// Expects reports whether the cache has an RdsAutopilot that the topic is named after. The topic's URN may not be in
// the cached status yet.
func (w *Cache) Expects(topicURN string) bool {
	name, ok := autopilotv1.ParseTopicURN(topicURN)
	return ok && w.ownerOf(name) != nil
}

// ownerOf returns the cached RdsAutopilot with that cloud name, or nil.
func (w *Cache) ownerOf(name autopilotv1.ParsedCloudName) *autopilotv1.RdsAutopilot {
	candidates := w.autopilots.by(byUID, name.ShortUID)
	i := slices.IndexFunc(candidates, name.Matches)
	if i < 0 {
		return nil
	}
	return candidates[i]
}

// ByTopicLive asks the API server for the RdsAutopilots whose status has the topic's URN. This costs one GET, because
// the URN contains namespace and name. If it does not contain them exactly and the cache has no such RdsAutopilot
// either, ByTopicLive lists the namespace. It returns autopilot.ErrLimited if there are more than searchesPerSec such
// lists.
func (c *Cluster) ByTopicLive(ctx context.Context, topicURN string) ([]*autopilotv1.RdsAutopilot, error) {
	topic, ok := autopilotv1.ParseTopicURN(topicURN)
	if !ok {
		return nil, nil
	}
	if owner := c.ownerOf(topic); owner != nil {
		topic.Namespace, topic.Name = owner.Namespace, owner.Name
		topic.NamespaceExact, topic.Exact = true, true
	}
	hasTopic := func(a *autopilotv1.RdsAutopilot) bool { return a.Status.Alarms.TopicURN == topicURN }
	namespaces := c.namespaces
	if topic.NamespaceExact {
		if !c.watches(topic.Namespace) {
			return nil, nil
		}
		namespaces = []string{topic.Namespace}
		switch a, err := c.LiveAutopilot(ctx, topic.Namespace, topic.Name); {
		case err == nil && hasTopic(a):
			return []*autopilotv1.RdsAutopilot{a}, nil
		case err != nil && !errors.Is(err, autopilot.ErrGone):
			return nil, err
		}
	}
	if topic.Exact {
		return nil, nil
	}
	if !c.searches.Allow() {
		return nil, fmt.Errorf("list RdsAutopilots for topic %s_%s: %w: %d such lists per second",
			topic.Namespace, topic.Name, autopilot.ErrLimited, searchesPerSec)
	}
	return c.listLive(ctx, namespaces, hasTopic)
}

func (c *Cluster) watches(namespace string) bool {
	return slices.Contains(c.namespaces, namespace) || slices.Contains(c.namespaces, metav1.NamespaceAll)
}
