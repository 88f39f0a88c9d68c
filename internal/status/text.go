// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// view holds the inputs that all texts share.
type view struct {
	now            time.Time
	mode           v1alpha1.Mode
	sweep, recheck time.Duration
	leader         string
	samples        map[string][]sample // of the registry, by metric name
	documents      string              // see Options
}

// reason is the code of a reason, and the address of its section in the documents. The address is empty for a code that
// has no section.
type reason struct{ Code, Page string }

func (v *view) reason(code string) reason {
	r := reason{Code: code}
	if v.documents != "" && autopilot.IsReason(code) {
		r.Page = v.documents + "docs/runbooks/reasons.md#" + strings.ToLower(code)
	}
	return r
}

// moment is a time in the forms that a page shows.
type moment struct {
	ISO  string // for machines; empty if the time is unknown
	Text string
	Ago  string
	For  string // how long ago
}

func (v *view) moment(t time.Time) moment {
	if t.IsZero() || t.Unix() == 0 {
		return moment{}
	}
	m := moment{ISO: t.UTC().Format(time.RFC3339), Text: t.UTC().Format("2006-01-02 15:04:05"), Ago: "now"}
	m.For = duration.HumanDuration(max(0, v.now.Sub(t)))
	switch d := v.now.Sub(t); {
	case d >= time.Second:
		m.Ago = duration.HumanDuration(d) + " ago"
	case d <= -time.Second:
		m.Ago = "in " + duration.HumanDuration(-d)
	}
	return m
}

// visible replaces characters that could hide or reverse their neighbours by their code points. It works on the
// rendered page, so it covers every text.
func visible(html []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(html)))
	for len(html) > 0 {
		if html[0] >= ' ' && html[0] < 0x7f { // most of a page
			out.WriteByte(html[0])
			html = html[1:]
			continue
		}
		r, size := utf8.DecodeRune(html)
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == utf8.RuneError && size == 1, unicode.IsControl(r),
			unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector):
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			out.Write(html[:size])
		}
		html = html[size:]
	}
	return out.Bytes()
}

// shorten cuts s after most characters for a table. The page of the database shows the whole text.
func shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + " …"
}
