// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	markPrefix  = "rds-autopilot "
	markCluster = " cluster "
	// markLimit is the limit of a topic's display name in bytes (SMN api: creating_a_topic.rst). The limit of a rule's
	// description is larger: 256 characters (CES api v1: creating_an_alarm_rule.rst).
	markLimit = 192
)

// Mark returns the text that identifies the owner of a topic or rule, for people and for Orphans: rds-autopilot
// <namespace>/<name> cluster <id>. It is the display name of a topic and the description of a rule. A long namespace
// or name is cut; the cluster's id (uid of kube-system) is never cut.
func Mark(namespace, name, clusterID string) string {
	namespace, name = v1alpha1.TruncateParts(namespace, name, markLimit-len(markPrefix)-len("/")-len(markCluster)-len(clusterID))
	return markPrefix + namespace + "/" + name + markCluster + clusterID
}

// ParseMark returns the parts of a text that Mark has returned; ok is false for any other text.
func ParseMark(mark string) (namespace, name, clusterID string, ok bool) {
	rest, ok := strings.CutPrefix(mark, markPrefix)
	object, clusterID, ok2 := strings.Cut(rest, markCluster)
	namespace, name, ok3 := strings.Cut(object, "/")
	if !ok || !ok2 || !ok3 || namespace == "" || name == "" || clusterID == "" ||
		strings.ContainsAny(namespace+name+clusterID, " /") {
		return "", "", "", false
	}
	return namespace, name, clusterID, true
}

// bearsMarkOf reports whether a text is a mark of an object with this base name, in any cluster.
func bearsMarkOf(text, base string) bool {
	_, _, cluster, ok := ParseMark(text)
	return ok && isMarkOf(text, base, cluster)
}

// isMarkOf reports whether a text is the mark of this cluster for this base name. Namespace and name of the mark must
// make the base name, because a copy of a rule under another name belongs to the person who copied it.
func isMarkOf(text, base, clusterID string) bool {
	namespace, name, id, ok := ParseMark(text)
	parsed, isName := v1alpha1.ParseCloudName(base)
	return ok && isName && id == clusterID && v1alpha1.CloudName(namespace, name, parsed.ShortUID) == base
}
