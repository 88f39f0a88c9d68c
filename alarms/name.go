// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	namePrefix = "autopilot_"
	nameLimit  = 100 // a rule's name takes 128 characters (CES api v1: creating_an_alarm_rule.rst), and we add the metric
	uidLength  = 8
)

// Name is the base name of all that belongs to one database: autopilot_<namespace>_<name>_<first 8 of the uid>. A long
// namespace or name is cut, the uid never, so that two databases always differ by it.
func Name(namespace, name, uid string) string {
	namespace, name = sanitize(namespace), sanitize(name)
	if uid = sanitize(uid); len(uid) > uidLength {
		uid = uid[:uidLength]
	}
	namespace, name = truncateBoth(namespace, name, nameLimit-len(namePrefix)-len("__")-uidLength)
	return namePrefix + namespace + "_" + name + "_" + uid
}

// truncateBoth cuts the longer of both, or each to half of the room.
func truncateBoth(namespace, name string, room int) (string, string) {
	if room = max(room, 0); len(namespace)+len(name) > room {
		namespace = truncate(namespace, max(room/2, room-len(name)))
		name = truncate(name, room-len(namespace))
	}
	return namespace, name
}

// sanitize keeps what all services take; the underscore is the separator and nothing else.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, s)
}

// RuleName is the name of the rule of one metric.
func RuleName(base string, metric v1alpha1.Metric) string { return base + "_" + string(metric) }

// isName reports whether a text has exactly the form of Name, with the uid of a real object.
func isName(s string) bool {
	rest, ok := strings.CutPrefix(s, namePrefix)
	parts := strings.Split(rest, "_")
	if !ok || len(s) > nameLimit || len(parts) != 3 || parts[0] == "" || parts[1] == "" || sanitize(rest) != strings.ReplaceAll(rest, "_", "-") {
		return false
	}
	return len(parts[2]) == uidLength && strings.Trim(parts[2], "0123456789abcdef") == ""
}

// baseOf is the base name of a rule's name; false if the name has not exactly the form of RuleName.
func (a *Alarms) baseOf(rule string) (base string, ok bool) {
	for _, metric := range a.metrics {
		if base, ok := strings.CutSuffix(rule, RuleName("", metric.Name)); ok {
			return base, isName(base)
		}
	}
	return "", false
}

// truncate shortens a text to a number of bytes, between two characters.
func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
