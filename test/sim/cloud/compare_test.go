// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// differences returns in which keys, types and forms of values a reply of the simulation differs from a recorded one.
func differences(recorded, got []byte) []string {
	var a, b any
	_ = json.Unmarshal(recorded, &a) // a body that is not JSON is nil, which differs from every other one
	_ = json.Unmarshal(got, &b)
	return compare("", "", a, b)
}

// isExact reports whether the values of a field must be equal: units, and the words that decide what a value means.
func isExact(path, key string) bool {
	if key == "code" { // of an error, not of a flavor
		return path == ".code" || path == ".message.code"
	}
	return slices.Contains([]string{"unit", "error_code", "filter", "comparison_operator", "namespace"}, key)
}

func compare(path, key string, recorded, got any) (out []string) {
	name := strings.TrimPrefix(path, ".")
	if a, b := kindOf(recorded), kindOf(got); a != b {
		return []string{fmt.Sprintf("%s is %s in the recording and %s in the simulation", name, a, b)}
	}
	switch r := recorded.(type) {
	case map[string]any:
		g := got.(map[string]any)
		if key == "az_status" { // its keys are zones
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(r)) {
			if inner, has := g[k]; has {
				out = append(out, compare(path+"."+k, k, r[k], inner)...)
			} else {
				out = append(out, strings.TrimPrefix(path+"."+k, ".")+" is missing in the simulation")
			}
		}
		for _, k := range slices.Sorted(maps.Keys(g)) {
			if _, has := r[k]; !has {
				out = append(out, strings.TrimPrefix(path+"."+k, ".")+" is not in the recording")
			}
		}
	case []any:
		return compareRows(path, key, r, got.([]any))
	case string:
		g := got.(string)
		a, b := formOf(r), formOf(g)
		switch {
		case isExact(path, key) && r != g:
			return []string{fmt.Sprintf("%s is %q in the recording and %q in the simulation", name, r, g)}
		case a != b && (!isPlain(a) || !isPlain(b)):
			return []string{fmt.Sprintf("%s has the form %s in the recording (%s) and %s in the simulation (%s)", name, a, r, b, g)}
		}
	}
	return out
}

// compareRows compares each row of the simulation with the recorded row of the same place, or else with any other.
func compareRows(path, key string, recorded, got []any) []string {
	if len(recorded) > 0 && len(got) == 0 {
		return []string{fmt.Sprintf("%s has %d rows in the recording and none in the simulation", path, len(recorded))}
	}
	if len(recorded) == 0 {
		return nil
	}
	for i, row := range got {
		out := compare(fmt.Sprintf("%s[%d]", path, i), key, recorded[min(i, len(recorded)-1)], row)
		if len(out) > 0 && !slices.ContainsFunc(recorded, func(r any) bool { return len(compare(path, key, r, row)) == 0 }) {
			return out
		}
	}
	return nil
}

// kindOf returns the type of a value, and of a time its unit.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case float64:
		switch {
		case v >= 1e12 && v < 1e14:
			return "a time in ms"
		case v >= 1e9 && v < 1e11:
			return "a time in s"
		}
	}
	return "a number"
}

func isPlain(form string) bool { return form == "text" || form == "digits" }

var (
	timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?$`)
	hexForm  = regexp.MustCompile(`^([0-9A-Fa-f]{12,})((?:in|no)\d\d)?$`)
	forms    = map[string]*regexp.Regexp{
		"digits": regexp.MustCompile(`^\d{1,11}$`), "mail": regexp.MustCompile(`^[^@\s]+@[^@\s]+$`),
		"ip":    regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){3}(:\d+)?$`),
		"uuid":  regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`),
		"alarm": regexp.MustCompile(`^a[lhr][0-9A-Za-z]{18,24}$`),
	}
)

// formOf returns the form of a string: that of a time, an id or an address, digits, or text.
func formOf(s string) string {
	if m := timeForm.FindStringSubmatch(s); m != nil {
		return "time" + m[2] + strings.Repeat("fraction", min(len(m[1]), 1))
	}
	if m := hexForm.FindStringSubmatch(s); m != nil {
		return "hex" + strconv.Itoa(len(m[1])) + m[2]
	}
	for name, form := range forms {
		if form.MatchString(s) {
			return name
		}
	}
	return "text"
}
