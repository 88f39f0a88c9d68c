// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

const (
	// CloudNamePrefix starts the name of every object that the autopilot creates in the cloud.
	CloudNamePrefix = "autopilot_"

	// cloudNameLimit is 100 because a rule's name may have 128 characters (CES API v1, creating_an_alarm_rule.rst)
	// and is the cloud name followed by the metric.
	cloudNameLimit = 100
	shortUIDLength = 8

	// partsLimit is how many characters remain for namespace and name.
	partsLimit = cloudNameLimit - len(CloudNamePrefix) - len("__") - shortUIDLength
)

// CloudName returns the name of the topic of an RdsAutopilot, which is also the start of its rules' names:
// autopilot_<namespace>_<name>_<first 8 of the uid>. It truncates a long namespace or name, but never the uid, so the
// names of two RdsAutopilots always differ. It replaces characters that the cloud refuses with hyphens.
func CloudName(namespace, name, uid string) string {
	namespace, name = TruncateParts(sanitize(namespace), sanitize(name), partsLimit)
	return CloudNamePrefix + namespace + "_" + name + "_" + shortUID(sanitize(uid))
}

// TruncateParts truncates the longer of namespace and name, or each to half of the limit, so that both together have
// at most limit characters.
func TruncateParts(namespace, name string, limit int) (string, string) {
	limit = max(limit, 0)
	if len(namespace)+len(name) <= limit {
		return namespace, name
	}
	namespace = first(namespace, max(limit/2, limit-len(name)))
	return namespace, first(name, limit-len(namespace))
}

// sanitize keeps the characters that all services accept. The underscore separates the parts, so it is replaced
// within a part.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, s)
}

func shortUID(uid string) string { return first(uid, shortUIDLength) }

// first returns at most the first n bytes of an ASCII text.
func first(s string, n int) string { return s[:min(len(s), n)] }

// ParsedCloudName is what a cloud name reveals about its RdsAutopilot.
type ParsedCloudName struct {
	Namespace string // possibly truncated
	Name      string // possibly truncated, and with hyphens in place of dots
	ShortUID  string

	// NamespaceExact reports that the namespace is not truncated.
	NamespaceExact bool
	// Exact reports that namespace and name are those of the RdsAutopilot.
	Exact bool

	maybeTruncated bool
}

// ParseCloudName returns false if the text cannot be the CloudName of a real object.
func ParseCloudName(text string) (ParsedCloudName, bool) {
	rest, ok := strings.CutPrefix(text, CloudNamePrefix)
	parts := strings.Split(rest, "_")
	if !ok || len(text) > cloudNameLimit || len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return ParsedCloudName{}, false
	}
	p := ParsedCloudName{Namespace: parts[0], Name: parts[1], ShortUID: parts[2]}
	isHex := strings.Trim(p.ShortUID, "0123456789abcdef") == ""
	if sanitize(p.Namespace) != p.Namespace || sanitize(p.Name) != p.Name || len(p.ShortUID) != shortUIDLength || !isHex {
		return ParsedCloudName{}, false
	}
	p.maybeTruncated = len(p.Namespace)+len(p.Name) == partsLimit
	p.NamespaceExact = !p.maybeTruncated || len(p.Namespace) < partsLimit/2
	p.Exact = !p.maybeTruncated && !strings.Contains(p.Name, "-")
	return p, true
}

// ParseTopicURN parses the cloud name in a topic's URN, urn:smn:<region>:<project>:<name>.
func ParseTopicURN(urn string) (ParsedCloudName, bool) {
	return ParseCloudName(urn[strings.LastIndex(urn, ":")+1:])
}

// Matches reports whether the RdsAutopilot can have this cloud name.
func (p ParsedCloudName) Matches(a *RdsAutopilot) bool {
	isPart := func(part, whole string) bool {
		return part == whole || p.maybeTruncated && strings.HasPrefix(whole, part)
	}
	return a.ShortUID() == p.ShortUID && isPart(p.Namespace, a.Namespace) && isPart(p.Name, sanitize(a.Name))
}

// ShortUID returns the part of the uid that is in the object's cloud name.
func (a *RdsAutopilot) ShortUID() string { return shortUID(string(a.UID)) }
