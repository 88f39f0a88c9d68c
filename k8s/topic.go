// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	searchesPerSec = 2 // listings for topics whose name does not give namespace and name to the letter
	uidLength      = 8 // of a uid in a topic's name
)

// topicName is what the name of a topic says: autopilot_<namespace>_<name>_<first 8 of the RdsAutopilot's uid>. In a
// name of 100 characters namespace and name can have been cut; a dot of the name has become a hyphen.
type topicName struct {
	namespace, name, uid string

	cut            bool // they may have been
	wholeNamespace bool // it is not
	exact          bool // both are to the letter
}

// parseTopic reads the URN of a topic, urn:smn:<region>:<project>:<name>. It returns false for a name that is not of
// that form.
func parseTopic(urn string) (topicName, bool) {
	name := urn[strings.LastIndex(urn, ":")+1:]
	parts := strings.Split(name, "_")
	if len(parts) != 4 || parts[0] != "autopilot" || parts[1] == "" || parts[2] == "" || len(parts[3]) != uidLength {
		return topicName{}, false
	}
	cut := len(name) >= 100
	return topicName{
		namespace: parts[1], name: parts[2], uid: parts[3],
		cut:            cut,
		wholeNamespace: !cut || len(parts[1]) < 40, // it is not made shorter than that
		exact:          !cut && !strings.Contains(parts[2], "-"),
	}, true
}

// belongsTo reports whether a topic of that name can be the autopilot's.
func (t topicName) belongsTo(a *autopilotv1.RdsAutopilot) bool {
	is := func(part, whole string) bool { return part == whole || t.cut && strings.HasPrefix(whole, part) }
	return shortUID(a) == t.uid && is(t.namespace, a.Namespace) && is(t.name, strings.ReplaceAll(a.Name, ".", "-"))
}

func shortUID(a *autopilotv1.RdsAutopilot) string {
	uid := string(a.UID)
	return uid[:min(len(uid), uidLength)]
}

// Expects reports whether the cache knows an autopilot that a topic with that URN would be named after: its status may
// just not be in the cache yet.
func (w *Cache) Expects(topicURN string) bool {
	_, ok := w.expected(topicURN)
	return ok
}

func (w *Cache) expected(topicURN string) (*autopilotv1.RdsAutopilot, bool) {
	t, ok := parseTopic(topicURN)
	if !ok {
		return nil, false
	}
	known := w.autopilots.by(byUID, t.uid)
	i := slices.IndexFunc(known, func(p *packed) bool { return t.belongsTo(&p.RdsAutopilot) })
	if i < 0 {
		return nil, false
	}
	return &known[i].RdsAutopilot, true
}

// ByTopicLive asks the API server for those whose status has the topic's URN, by one GET: namespace and name
// are in the URN. Where they are not there to the letter, and the cache does not know the autopilot either, it may list
// a namespace; an error says that too many ask for that.
func (c *Cluster) ByTopicLive(ctx context.Context, topicURN string) ([]*autopilotv1.RdsAutopilot, error) {
	t, ok := parseTopic(topicURN)
	if !ok {
		return nil, nil
	}
	if known, ok := c.expected(topicURN); ok {
		t.namespace, t.name, t.wholeNamespace, t.exact = known.Namespace, known.Name, true, true
	}
	asksFor := func(a *autopilotv1.RdsAutopilot) bool { return a.Status.Alarms.TopicURN == topicURN }
	namespaces := c.namespaces
	if t.wholeNamespace {
		if !c.watches(t.namespace) {
			return nil, nil
		}
		namespaces = []string{t.namespace}
		switch a, err := c.LiveAutopilot(ctx, t.namespace, t.name); {
		case err == nil && asksFor(a):
			return []*autopilotv1.RdsAutopilot{a}, nil
		case err != nil && !errors.Is(err, autopilot.ErrGone):
			return nil, err
		}
	}
	if t.exact {
		return nil, nil
	}
	if !c.searches.Allow() {
		return nil, fmt.Errorf("list RdsAutopilots for topic %s_%s: more than %d such topics a second", t.namespace, t.name, searchesPerSec)
	}
	return c.listLive(ctx, namespaces, asksFor)
}

func (c *Cluster) watches(namespace string) bool {
	return slices.Contains(c.namespaces, namespace) || slices.Contains(c.namespaces, metav1.NamespaceAll)
}
