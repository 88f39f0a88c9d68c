// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const testUID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"

func TestCloudNameFitsLimitAndGrammar(t *testing.T) {
	long := strings.Repeat("n", 63)
	tests := map[string]struct{ namespace, name, uid, want string }{
		"as it is":              {"shop", "orders", testUID, "autopilot_shop_orders_1b4e28ba"},
		"dots and underscores":  {"shop", "or.de_rs", testUID, "autopilot_shop_or-de-rs_1b4e28ba"},
		"not ASCII":             {"shöp", "o/r", testUID, "autopilot_sh-p_o-r_1b4e28ba"},
		"just fits":             {long, strings.Repeat("a", 17), testUID, "autopilot_" + long + "_" + strings.Repeat("a", 17) + "_1b4e28ba"},
		"long name":             {"shop", strings.Repeat("a", 253), testUID, "autopilot_shop_" + strings.Repeat("a", 76) + "_1b4e28ba"},
		"long namespace":        {long, strings.Repeat("a", 30), testUID, "autopilot_" + strings.Repeat("n", 50) + "_" + strings.Repeat("a", 30) + "_1b4e28ba"},
		"both long":             {long, strings.Repeat("a", 253), testUID, "autopilot_" + strings.Repeat("n", 40) + "_" + strings.Repeat("a", 40) + "_1b4e28ba"},
		"uid shorter than 8":    {"a", "b", "12", "autopilot_a_b_12"},
		"odd characters in uid": {"a", "b", "1_2/3456789", "autopilot_a_b_1-2-3456"},
	}
	grammar := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := CloudName(tt.namespace, tt.name, tt.uid)
			if got != tt.want {
				t.Errorf("CloudName\n got %s\nwant %s", got, tt.want)
			}
			if !grammar.MatchString(got) {
				t.Errorf("%q (%d characters) is no name", got, len(got))
			}
		})
	}
	a := CloudName(long, strings.Repeat("a", 253), "11111111-")
	b := CloudName(long, strings.Repeat("a", 252)+"b", "22222222-")
	if a == b || a[:90] != b[:90] {
		t.Errorf("names that are truncated alike must differ by uid: %s and %s", a, b)
	}
}

func TestParseTopicURNIdentifiesItsAutopilot(t *testing.T) {
	const urnStart = "urn:smn:eu-de:0123456789abcdef0123456789abcdef:"
	word := func(n int) string { return strings.Repeat("a", n) }
	for _, tc := range []struct {
		namespace, name       string
		exact, namespaceExact bool
	}{
		{"ns", "db", true, true},
		{"my-ns", "db", true, true},
		{"ns", "my-db", false, true},
		{"ns", "my.db", false, true},
		{word(40), word(39), true, true},
		{word(40), word(40), false, false}, // possibly truncated
		{word(39), word(41), false, true},
		{word(10), word(253), false, true},
		{word(63), word(253), false, false},
		{word(63), word(16), true, true},
		{word(63), word(17), false, false},
	} {
		urn := urnStart + CloudName(tc.namespace, tc.name, testUID)
		got, ok := ParseTopicURN(urn)
		if !ok || got.Exact != tc.exact || got.NamespaceExact != tc.namespaceExact || got.ShortUID != testUID[:8] {
			t.Errorf("%s: %+v, %t", urn, got, ok)
		}
		if tc.exact && (got.Namespace != tc.namespace || got.Name != tc.name) || tc.namespaceExact && got.Namespace != tc.namespace {
			t.Errorf("%s is %+v", urn, got)
		}
		owner := &RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.name, UID: testUID}}
		if !got.Matches(owner) {
			t.Errorf("%s does not match its owner", urn)
		}
		if short, _ := ParseTopicURN(urnStart + CloudName(tc.namespace[:1], tc.name[:1], testUID)); short.Matches(owner) {
			t.Errorf("a topic with the first letters of both matches %s/%s", tc.namespace, tc.name)
		}
		owner.UID = types.UID("2" + testUID[1:])
		if got.Matches(owner) {
			t.Errorf("%s matches a later object of the same name", urn)
		}
	}
	for _, name := range []string{
		"", "urn", "autopilot_ns_db", "autopilot_ns_db_1234567", "autopilot_a_b_c_12345678", "x_ns_db_12345678", "autopilot__db_12345678",
		"autopilot_ns_db_1234567g", "autopilot_n.s_db_12345678", CloudName(word(63), word(253), testUID) + "a",
	} {
		if got, ok := ParseTopicURN(urnStart + name); ok {
			t.Errorf("%q is %+v", name, got)
		}
	}
}
