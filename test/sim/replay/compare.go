// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/recording"
)

// mostLines is how many lines of each body a difference shows. The catalogue alone has 900.
const mostLines = 80

// Difference is one between a recording and the simulation.
type Difference struct {
	Line          int
	Request, What string
	Recorded, Got []byte // bodies
}

// String returns the difference with both bodies.
func (d Difference) String() string {
	return fmt.Sprintf("line %d, %s: %s\nrecorded:\n%s\nsimulated:\n%s", d.Line, d.Request, d.What, pretty(d.Recorded), pretty(d.Got))
}

// pretty returns a body with its keys in order, so that bodies can be compared line by line.
func pretty(body []byte) string {
	if v := decode(body); v != nil {
		body, _ = json.MarshalIndent(v, "", "  ") // what was just decoded
	}
	lines := strings.Split(string(body), "\n")
	return strings.Join(lines[:min(len(lines), mostLines)], "\n")
}

// comparison collects the differences and the order of states.
type comparison struct {
	forms       *recording.Forms
	line        int
	request     string
	differences []Difference
	states      map[string]*states // by subject
}

// states are those of one object, without repetitions.
type states struct {
	recorded, got []any
	last          Difference // with the newest bodies
}

func newComparison() *comparison {
	return &comparison{forms: recording.NewForms(), states: map[string]*states{}}
}

// Compare returns the differences between a recorded body and one of the simulation.
func Compare(recorded, got []byte) []string {
	return newComparison().compare("", "", decode(recorded), decode(got))
}

// exchange compares a reply with the recorded one.
func (c *comparison) exchange(x recording.Exchange, status int, header http.Header, body []byte) {
	tell := func(format string, args ...any) {
		c.differences = append(c.differences, Difference{c.line, c.request, fmt.Sprintf(format, args...), x.Reply, body})
	}
	if status != x.Status {
		tell("the status is %d in the recording and %d in the simulation", x.Status, status)
		return
	}
	if x.Header["X-Subject-Token"] != "" && header.Get("X-Subject-Token") == "" {
		tell("the simulation sends no X-Subject-Token")
	}
	for _, what := range c.compare("", "", decode(x.Reply), decode(body)) {
		tell("%s", what)
	}
	query, _ := json.Marshal(x.Query) // strings only
	last := Difference{Line: c.line, Request: c.request, Recorded: x.Reply, Got: body}
	c.follow(x.Method+" "+x.Path+string(query), decode(x.Reply), decode(body), last)
}

// exact reports whether the values of a field have to be equal: units, and the words that decide what a value means.
func exact(path, key string) bool {
	if key == "code" { // of an error, not of a flavor
		return path == ".code" || path == ".message.code"
	}
	return slices.Contains([]string{"unit", "error_code", "filter", "comparison_operator", "namespace"}, key)
}

// holdsState reports whether a field holds a state.
func holdsState(key string) bool { return key == "status" || key == "alarm_state" }

// compare returns the differences below a key.
func (c *comparison) compare(path, key string, recorded, got any) (out []string) {
	if a, b := kind(recorded), kind(got); a != b {
		return []string{fmt.Sprintf("%s is %s in the recording and %s in the simulation", name(path), a, b)}
	}
	switch r := recorded.(type) {
	case map[string]any:
		g := got.(map[string]any)
		if key == "az_status" { // its keys are zones
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(r)) {
			inner, has := g[k]
			if !has {
				out = append(out, fmt.Sprintf("%s is missing in the simulation", name(path+"."+k)))
				continue
			}
			out = append(out, c.compare(path+"."+k, k, r[k], inner)...)
		}
		for _, k := range slices.Sorted(maps.Keys(g)) {
			if _, has := r[k]; !has {
				out = append(out, fmt.Sprintf("%s is not in the recording", name(path+"."+k)))
			}
		}
	case []any:
		return c.list(path, key, r, got.([]any))
	case string:
		g := got.(string)
		a, b := c.forms.Of(r), c.forms.Of(g)
		switch {
		case exact(path, key) && r != g:
			return []string{fmt.Sprintf("%s is %q in the recording and %q in the simulation", name(path), r, g)}
		case a != b && (!plain(a) || !plain(b)):
			return []string{fmt.Sprintf("%s has the form %s in the recording (%s) and %s in the simulation (%s)", name(path), a, r, b, g)}
		}
	}
	return out
}

func plain(form string) bool { return form == "text" || form == "digits" }

// list compares each row of the simulation with the row of the same place, or else with any other.
func (c *comparison) list(path, key string, recorded, got []any) []string {
	if len(recorded) > 0 && len(got) == 0 {
		return []string{fmt.Sprintf("%s has %d rows in the recording and none in the simulation", name(path), len(recorded))}
	}
	if len(recorded) == 0 {
		return nil
	}
	for i, row := range got {
		same := recorded[min(i, len(recorded)-1)]
		out := c.compare(fmt.Sprintf("%s[%d]", path, i), key, same, row)
		if len(out) > 0 && !slices.ContainsFunc(recorded, func(r any) bool { return len(c.compare(path, key, r, row)) == 0 }) {
			return out
		}
	}
	return nil
}

// kind returns the type of a value, and of a time its unit.
func kind(v any) string {
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

func name(path string) string {
	if path == "" {
		return "the body"
	}
	return strings.TrimPrefix(path, ".")
}

// follow records the states in a pair of bodies, each for its object.
func (c *comparison) follow(subject string, recorded, got any, last Difference) {
	switch r := recorded.(type) {
	case map[string]any:
		for key, inner := range r {
			if holdsState(key) && inner != nil && at(got, key) != nil {
				c.state(subject+"."+key, inner, at(got, key), last)
			} else {
				c.follow(subject+"."+key, inner, at(got, key), last)
			}
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(r), len(g)) {
			id := cmp.Or(text(at(r[i], "id")), text(at(r[i], "alarm_id")), text(at(r[i], "subscription_urn")), fmt.Sprint(i))
			c.follow(subject+"["+id+"]", r[i], g[i], last)
		}
	}
}

// state adds a state to the order of an object.
func (c *comparison) state(subject string, recorded, got any, last Difference) {
	s := c.states[subject]
	if s == nil {
		s = &states{}
		c.states[subject] = s
	}
	s.recorded, s.got = slices.Compact(append(s.recorded, recorded)), slices.Compact(append(s.got, got))
	s.last = last
}

// end reports the objects whose states differ, or come in another order.
func (c *comparison) end() {
	for _, subject := range slices.Sorted(maps.Keys(c.states)) {
		if s := c.states[subject]; !slices.Equal(s.recorded, s.got) {
			s.last.What = fmt.Sprintf("the states of %s are %v in the recording and %v in the simulation", subject, s.recorded, s.got)
			c.differences = append(c.differences, s.last)
		}
	}
}
