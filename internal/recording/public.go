// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// vocabulary tells what may be published.
type vocabulary struct {
	public, part, quoted, plain              *regexp.Regexp // words, and how to find them
	publicKey, textKey, secretKey, fieldName *regexp.Regexp // names of fields
	forms                                    *Forms
}

func newVocabulary() *vocabulary {
	is := func(alternatives ...string) *regexp.Regexp {
		return regexp.MustCompile(`^(` + strings.Join(alternatives, "|") + `)$`)
	}
	return &vocabulary{
		// The cloud's own words, and numbers too short to identify anything.
		public: is(`-?\d{1,6}(\.\d{1,9})?|1\d{12}`, // the long ones are times in ms
			`v\d(\.\d)?|V1\.0|https?|sms|email|urn|smn|ces|rds|iam|evs|ecs|auth|tokens?|key|value|projects|domains|catalog`,
			`notifications|topics|subscriptions|publish|alarms|action|metrics|metric-data|batch-query-metric-data|quotas`,
			`instances|flavors|datastores|storage-type|jobs|flavors-resize|disk-auto-expansion|storage-used-space|tasklist`,
			`(?i:mysql|postgresql|sqlserver)|offset|limit|start|order|desc|asc|average|max|min|sum|variance|raw`,
			`(?i)eu-(de|nl|ch\d?)(-\d\d[a-z]?)?`,
			`SYS\.[A-Z]{2,8}(\.(rds\d{3}_[a-z_]+|[a-z]+_[a-z_]+)){0,2}`,
			`rds\d{3}_[a-z_]+|(rds|postgresql)_(cluster|instance)(_sqlserver)?_id|`+
				`rds\.(mysql|pg|mssql)\.[a-z]+\d\.\d*x?[a-z]+(\.\d+)?(\.(ha|rr)2?)?`,
			`(iam|iam-pub|smn|ces|rds|evs|ecs|console)\.((eu-de|eu-nl)\.otc|eu-ch2\.sc\.otc|otc)\.t-systems\.com`,
			`[A-Z][A-Za-z]{2,5}\.\d{4,8}|ces\.\d{4}`),
		// Fields whose values are the cloud's words: states, types, units, versions, codes.
		publicKey: is(`status|type|unit|region|region_id|interface|version|complete_version|metric_name|namespace|filter`,
			`comparison_operator|alarm_state|alarm_type|protocol|role|availability_zone|error_code|code|http_code|mode`,
			`replication_mode|charge_mode|time_zone|maintenance_window|start_time|flavor_ref|spec_code|instance_mode`,
			`datastore_type|cpu|mem|vcpus|methods|title|order|Content-Type|Retry-After`,
			`eu-.*`), // zones: the key names one, and the value is the state of a flavor in it
		textKey: is(`error_msg|message|details|fail_reason`), // a sentence of the cloud
		// Names of secrets, whatever service invents them.
		secretKey: regexp.MustCompile(`(?i)pass|pwd|secret|token|credential|private_?key|signature|auth|session|cookie|` +
			`account|cert|key|(^|_)(ak|sk|pin|otp|salt|hash)$`),
		fieldName: is(`[A-Za-z_][A-Za-z0-9_.]{0,39}`),
		plain:     is(`[A-Za-z]{0,20}:?`),
		part:      regexp.MustCompile(`[^:/?&=,;]+`),
		// What is quoted, or a word with all that an id, a host or an address may contain.
		quoted: regexp.MustCompile(`"[^"]+"|'[^']+'|[A-Za-z0-9_.@+=:%-]+`),
		forms:  NewForms(),
	}
}

// suspicious reports whether a value of a public field has the form of a secret, an id or an address.
func (v *vocabulary) suspicious(s string) bool {
	form := v.forms.Of(s)
	mixed := strings.ContainsFunc(s, unicode.IsLower) && strings.ContainsFunc(s, unicode.IsUpper) &&
		strings.ContainsFunc(s, unicode.IsDigit)
	return len(s) > 48 || form != "text" && form != "digits" || form == "digits" && len(s) > 6 || len(s) >= 16 && mixed
}

// Forms tells the form of a string.
type Forms struct {
	placeholder, time, hex *regexp.Regexp
	others                 map[string]*regexp.Regexp
}

// NewForms returns the forms that a recording distinguishes.
func NewForms() *Forms {
	return &Forms{
		placeholder: regexp.MustCompile(`^redacted-([a-zA-Z0-9+:]+)-\d+$`),
		time:        regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?$`),
		hex:         regexp.MustCompile(`^([0-9A-Fa-f]{12,})((?:in|no)\d\d)?$`),
		others: map[string]*regexp.Regexp{
			"digits": regexp.MustCompile(`^\d{1,11}$`), "mail": regexp.MustCompile(`^[^@\s]+@[^@\s]+$`),
			"ip":    regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){3}(:\d+)?$`),
			"uuid":  regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`),
			"alarm": regexp.MustCompile(`^a[lhr][0-9A-Za-z]{18,24}$`),
		},
	}
}

// Of returns the form of a string: that of a time, an id or an address, digits, or text. A placeholder has the form of
// the value that it stands for.
func (f *Forms) Of(s string) string {
	if m := f.placeholder.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	if m := f.time.FindStringSubmatch(s); m != nil {
		return "time" + m[2] + strings.Repeat("fraction", min(len(m[1]), 1))
	}
	if m := f.hex.FindStringSubmatch(s); m != nil {
		return "hex" + strconv.Itoa(len(m[1])) + m[2]
	}
	for name, form := range f.others {
		if form.MatchString(s) {
			return name
		}
	}
	return "text"
}
