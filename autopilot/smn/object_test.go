// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"strings"
	"testing"
)

// The inputs are valid JSON that other readers judge differently. FuzzObject has the invalid ones.
func TestParseObjectIsStrictAboutKnownFieldsOnly(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for input, accepted := range map[string]bool{
		`{"a":"x"}`:                    true,
		`{"a":"x","a":"x"}`:            false,
		`{"a":"x","\u0061":"x"}`:       false,
		`{"a":"x","A":1}`:              false,
		`{"a":"x","b":1,"b":2}`:        true,
		`{"a":"x","b":{"c":1,"c":2}}`:  true,
		`{"a":"x","b":"\ud800"}`:       true,
		`{"a":"x","\udc00":1}`:         true,
		`{"a":"\ud800"}`:               false,
		`{"a":"\udc00\ud800"}`:         false,
		`{"a":"\ufffd"}`:               true,
		`{"a":"\ud83d\ude00"}`:         true,
		`{"a":"\u0000"}`:               true,
		"{\"a\":\"\x7f\"}":             true,
		"{\"a\":\"x\",\"b\":\"\xff\"}": false,
		"{\"a\":\"\xed\xa0\x80\"}":     false,
		`{"a":1}`:                      false,
		`{"a":null}`:                   false,
		`{"a":"x","b":` + strings.Repeat("9", 9999) + `}`: true,
		`{"a":"x","b":` + nested(maxDepth-1) + `}`:        true,
		`{"a":"x","b":` + nested(maxDepth) + `}`:          false,
		`{"a":"x","b":` + nested(20000) + `}`:             false,
		`{"a":"x","b":[{},{"c":` + nested(5) + `}]}`:      true,
		`{"a":"x","b":[{},{"c":` + nested(6) + `}]}`:      false,
	} {
		found, err := parseObject([]byte(input), "a")
		if err == nil {
			_, err = parseString(found["a"])
		}
		if (err == nil) != accepted {
			t.Errorf("%.60q: %v, want accepted: %t", input, err, accepted)
		}
	}
}
