// SPDX-License-Identifier: Apache-2.0

package alarms

import "strings"

const (
	markPrefix  = "rds-autopilot "
	markCluster = " cluster "
	// markLimit is the smaller of what a topic's display name (192 bytes; SMN api: creating_a_topic.rst) and a rule's
	// description (256 characters; CES api v1: creating_an_alarm_rule.rst) take.
	markLimit = 192
)

// Mark says whose a topic or rule is, in its display name or description, to people and to Orphans: rds-autopilot
// <namespace>/<name> cluster <id>. A long namespace or name is cut, the cluster's id (uid of kube-system) never.
func Mark(namespace, name, clusterID string) string {
	namespace, name = truncateBoth(namespace, name, markLimit-len(markPrefix)-len("/")-len(markCluster)-len(clusterID))
	return markPrefix + namespace + "/" + name + markCluster + clusterID
}

// ParseMark reads what Mark has written; false for any other text.
func ParseMark(mark string) (namespace, name, clusterID string, ok bool) {
	rest, ok := strings.CutPrefix(mark, markPrefix)
	object, clusterID, ok2 := strings.Cut(rest, markCluster)
	namespace, name, ok3 := strings.Cut(object, "/")
	if !ok || !ok2 || !ok3 || namespace == "" || name == "" || clusterID == "" || strings.ContainsAny(namespace+name+clusterID, " /") {
		return "", "", "", false
	}
	return namespace, name, clusterID, true
}

// bearsMarkOf reports whether a text is a mark of an object with this base name, in whatever cluster.
func bearsMarkOf(text, base string) bool {
	_, _, cluster, ok := ParseMark(text)
	return ok && isMarkOf(text, base, cluster)
}

// isMarkOf reports whether a text is the mark that a cluster has put on what bears this base name. The name must be that of
// the mark: a copy of a rule under another name belongs to the person that made it.
func isMarkOf(text, base, clusterID string) bool {
	namespace, name, id, ok := ParseMark(text)
	return ok && id == clusterID && Name(namespace, name, base[len(base)-uidLength:]) == base
}
