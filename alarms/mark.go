// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	markPrefix     = "rds-autopilot "
	markCluster    = " cluster "
	markRecommends = " recommends only"
	// partsLimit is how many characters namespace and name may have together. Then a mark has at most 236 characters,
	// and a rule's description may have 256 (CES api v1: creating_an_alarm_rule.rst).
	partsLimit = 160

	namePrefix = "autopilot_"
	// nameLimit is for a whole name. Cloud Eye allows 128 characters (CES api v1: creating_an_alarm_rule.rst).
	nameLimit = 100
	// hashLength is in hex digits. Two of 10,000 objects have the same hash with a probability of 1 %, and then their
	// namespaces or names still differ.
	hashLength = 8
)

// Mark says whose a rule is. Its text is the description of the rule. People copy descriptions, and a cloud may cut
// them, so a mark is believed only if the rule has the name that the mark gives it.
type Mark struct {
	Namespace, Name string
	Cluster         string // uid of the namespace kube-system
	// Recommends is true if the effective mode of the RdsAutopilot is Recommend. Its rules do not stop another one from
	// managing the instance.
	Recommends bool
}

// String returns "rds-autopilot <namespace>/<name> cluster <id>", followed by " recommends only" if Recommends is true.
func (m Mark) String() string {
	text := markPrefix + m.Namespace + "/" + m.Name + markCluster + m.Cluster
	if m.Recommends {
		text += markRecommends
	}
	return text
}

// ParseMark returns the mark that has this text; ok is false for any other text.
func ParseMark(text string) (m Mark, ok bool) {
	rest, ok := strings.CutPrefix(text, markPrefix)
	object, cluster, ok2 := strings.Cut(rest, markCluster)
	m.Cluster, m.Recommends = strings.CutSuffix(cluster, markRecommends)
	var ok3 bool
	m.Namespace, m.Name, ok3 = strings.Cut(object, "/")
	if !ok || !ok2 || !ok3 || m.Namespace == "" || m.Name == "" || m.Cluster == "" ||
		strings.ContainsAny(m.Namespace+m.Name+m.Cluster, " /") {
		return Mark{}, false
	}
	return m, true
}

// names reports whether a rule has the name that the mark gives it.
func (m Mark) names(r otc.Rule) bool {
	_, _, ok := ParseRuleName(r.Name)
	return ok && strings.HasPrefix(r.Name, m.ruleBase()+"_")
}

// markOf returns the mark of a rule in any mode. ok is false if it cannot be believed. Such a rule is never removed.
func markOf(r otc.Rule) (owner Mark, ok bool) {
	owner, ok = ParseMark(r.Description)
	owner.Recommends = false
	return owner, ok && owner.names(r)
}

// ownerOf returns the owner of a rule as own sees it, and whether the rule claims its instance. If the mark cannot be
// believed, the hash in the name still proves own, and others of its cluster. Any other owner then has no cluster.
func ownerOf(r otc.Rule, own Mark) (owner Mark, claims bool) {
	if owner, ok := markOf(r); ok {
		return owner, !strings.HasSuffix(r.Description, markRecommends)
	}
	namespace, name, ok := ParseRuleName(r.Name)
	neighbour := Mark{Namespace: namespace, Name: name, Cluster: own.Cluster}
	switch {
	case own.names(r):
		return own, true
	case neighbour.names(r):
		return neighbour, true
	}
	return Mark{Namespace: namespace, Name: name}, ok
}

// check returns an error that wraps v1alpha1.ErrNameTooLong if namespace and name do not fit into a mark.
func (m Mark) check() error {
	if n := len(m.Namespace) + len(m.Name); n > partsLimit {
		return fmt.Errorf("%w: namespace and name have %d characters together, and a rule in the cloud has room for %d. Use a shorter name",
			v1alpha1.ErrNameTooLong, n, partsLimit)
	}
	return nil
}

// RuleName returns the name of the owner's rule for a metric: autopilot_<namespace>_<name>_<hash>_<metric>. It replaces
// characters that the cloud refuses with hyphens, and truncates a long namespace or name, but never the hash.
func (m Mark) RuleName(metric v1alpha1.Metric) string { return m.ruleBase() + "_" + string(metric) }

// ruleBase returns the part that the names of all rules of the owner have in common.
func (m Mark) ruleBase() string {
	end := "_" + hash(m.Cluster, m.Namespace, m.Name)
	limit := nameLimit - len(namePrefix) - len("_") - len(end) - len("_") - len(v1alpha1.MetricStorage) // the longest metric
	namespace, name := truncate(sanitize(m.Namespace), sanitize(m.Name), limit)
	return namePrefix + namespace + "_" + name + end
}

// ParseRuleName returns the namespace and name in the name of a rule. They are those of the object unless RuleName had
// to truncate or to replace something. ok is false if it is not the name of a rule of ours.
func ParseRuleName(text string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(text, namePrefix)
	parts := strings.Split(rest, "_")
	if !ok || len(parts) != 4 || len(parts[2]) != hashLength || slices.Contains(parts, "") {
		return "", "", false
	}
	switch v1alpha1.Metric(parts[3]) {
	case v1alpha1.MetricStorage, v1alpha1.MetricCPU, v1alpha1.MetricMemory:
		return parts[0], parts[1], true
	}
	return "", "", false
}

// TopicName returns the name of the topic of an installation: rds-autopilot_<hash>.
func TopicName(cluster, namespace string) string { return "rds-autopilot_" + hash(cluster, namespace) }

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// truncate truncates the longer of two texts, or each to half of the limit, so that both together have at most limit
// bytes.
func truncate(a, b string, limit int) (string, string) {
	if len(a)+len(b) <= limit {
		return a, b
	}
	a = a[:min(len(a), max(limit/2, limit-len(b)))]
	return a, b[:min(len(b), limit-len(a))]
}

// sanitize keeps the characters that all services accept. The underscore separates the parts of a name, so it is
// replaced within a part.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, s)
}
