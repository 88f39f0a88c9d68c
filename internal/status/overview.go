// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	rowsPerPage    = 100 // databases
	sentenceInRow  = 160 // characters
	namespacesShow = 100 // entries in the list of the filter
)

// query holds the filter, order and page of the overview. It comes from the URL and goes into the links.
type query struct {
	Namespace, State, Text string
	Sort                   string
	Descending             bool
	page                   int
}

func readQuery(values url.Values) query {
	q := query{
		Namespace: strings.TrimSpace(values.Get("namespace")), State: values.Get("state"),
		Text: strings.TrimSpace(values.Get("q")),
		Sort: values.Get("sort"), Descending: values.Get("order") == "desc",
	}
	if !slices.ContainsFunc(columns(), func(c column) bool { return c.Key == q.Sort && c.order != nil }) {
		q.Sort = "state"
	}
	if !slices.ContainsFunc(stateTable(), func(r stateRow) bool { return r.Key == q.State }) {
		q.State = ""
	}
	q.page, _ = strconv.Atoi(values.Get("page")) // an invalid number means the first page
	return q
}

// link returns the query as a relative URL.
func (q query) link() string {
	values := url.Values{}
	for key, value := range map[string]string{"namespace": q.Namespace, "state": q.State, "q": q.Text} {
		if value != "" {
			values.Set(key, value)
		}
	}
	if q.Sort != "state" {
		values.Set("sort", q.Sort)
	}
	if q.Descending {
		values.Set("order", "desc")
	}
	if q.page > 1 {
		values.Set("page", strconv.Itoa(q.page))
	}
	return "./?" + values.Encode()
}

func (q query) matches(d *database) bool {
	if q.Namespace != "" && d.Namespace != q.Namespace || q.State != "" && d.State.row().Key != q.State {
		return false
	}
	if q.Text == "" {
		return true
	}
	text := strings.ToLower(q.Text)
	for _, s := range []string{d.Namespace + "/" + d.Name, d.flavor(), d.sentence(), d.pending(), d.alarms()} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return false
}

// column is a column of the table. order is nil if the table cannot be sorted by it.
type column struct {
	Key, Label string
	order      func(a, b *database) int
}

func columns() []column {
	return []column{
		{"database", "Database", func(*database, *database) int { return 0 }},
		{"state", "State", func(a, b *database) int { return cmp.Compare(a.State, b.State) }},
		{"mode", "Mode", func(a, b *database) int { return cmp.Compare(a.Mode, b.Mode) }},
		{"storage", "Storage", func(a, b *database) int { return cmp.Compare(a.Storage.Percent, b.Storage.Percent) }},
		{"flavor", "Flavor", func(a, b *database) int { return cmp.Compare(a.flavor(), b.flavor()) }},
		{"alarms", "Alarms", func(a, b *database) int { return cmp.Compare(a.alarms(), b.alarms()) }},
		{"pending", "Pending", func(a, b *database) int { return cmp.Compare(a.pending(), b.pending()) }},
		{"changed", "Last change", func(a, b *database) int { return a.changed().Compare(b.changed()) }},
		{"next", "Next check", nil},
	}
}

// sortDatabases sorts all by the chosen column and then by name.
func (q query) sortDatabases(all []*database) {
	by := columns()[slices.IndexFunc(columns(), func(c column) bool { return c.Key == q.Sort })]
	slices.SortFunc(all, func(a, b *database) int {
		order := cmp.Or(by.order(a, b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		if q.Descending {
			return -order
		}
		return order
	})
}

type header struct {
	Label, Link string
	Sorted      string // for aria-sort: ascending, descending or empty
}

func (q query) headers() (all []header) {
	for _, c := range columns() {
		h := header{Label: c.Label}
		if c.order != nil {
			to := q
			to.page, to.Sort, to.Descending = 1, c.Key, false
			if q.Sort == c.Key {
				h.Sorted, to.Descending = "ascending", !q.Descending
				if q.Descending {
					h.Sorted = "descending"
				}
			}
			h.Link = to.link()
		}
		all = append(all, h)
	}
	return all
}

// number is a count above the table.
type number struct {
	Label, Link, Tone string
	Count             int
	Chosen            bool
}

type row struct {
	database
	Path     string // from the overview
	Row      stateRow
	Begun    moment // the state
	Reason   reason // of the state
	Sentence string // without the reason
	Bar      bar
	Measured moment // the used space
	Flavor   string
	Alarms   []alarm
	Pending  string
	Change   string
	Changed  moment
	Next     string
}

type overview struct {
	Query          query
	Numbers        []number
	Armed          int // with the condition Armed, in any state
	Waiting        int // for a check; only the leader counts them
	Changes        int // of the autopilot, completed within 24 hours
	Headers        []header
	Rows           []row
	Namespaces     []string
	States         []stateRow
	Matching, All  int
	First          int // number of the first row, counted from 1
	Page, Pages    int
	Previous, Next string
	Everything     string // link that drops the filters
}

func (p *pages) showOverview(r *http.Request, v *view) answer {
	return answer{http.StatusOK, p.overview, "./", "Databases", v.overview(p.databases(v), readQuery(r.URL.Query()))}
}

func (v *view) overview(all []database, q query) overview {
	o := overview{All: len(all), Waiting: v.replica().WaitingDatabases, States: stateTable(), Headers: q.headers(),
		Everything: query{Sort: q.Sort, Descending: q.Descending}.link()}
	counts := make([]int, len(stateTable()))
	namespaces := map[string]bool{}
	var found []*database
	for i := range all {
		d := &all[i]
		counts[d.State]++
		namespaces[d.Namespace] = true
		if a := d.autopilot; a != nil && meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionArmed) {
			o.Armed++
		}
		o.Changes += v.changesOfADay(d)
		if q.matches(d) {
			found = append(found, d)
		}
	}
	for i, s := range stateTable() {
		to := q
		to.page, to.State = 1, s.Key
		if counts[i] > 0 || q.State == s.Key {
			o.Numbers = append(o.Numbers, number{s.Label, to.link(), s.Tone, counts[i], q.State == s.Key})
		}
	}
	o.Namespaces = slices.Sorted(maps.Keys(namespaces))
	o.Namespaces = o.Namespaces[:min(len(o.Namespaces), namespacesShow)]
	q.sortDatabases(found)

	o.Matching, o.Pages = len(found), max(1, (len(found)+rowsPerPage-1)/rowsPerPage)
	q.page = min(max(q.page, 1), o.Pages)
	o.Page, o.First, o.Query = q.page, (q.page-1)*rowsPerPage+1, q
	turn := func(page int) string {
		to := q
		to.page = page
		return to.link()
	}
	if q.page > 1 {
		o.Previous = turn(q.page - 1)
	}
	if q.page < o.Pages {
		o.Next = turn(q.page + 1)
	}
	for _, d := range found[o.First-1 : min(o.First-1+rowsPerPage, len(found))] {
		o.Rows = append(o.Rows, v.row(d))
	}
	return o
}

func (v *view) row(d *database) row {
	r := row{
		database: *d, Path: d.path(), Row: d.State.row(), Begun: v.moment(d.Since), Reason: v.reason(d.Code),
		Sentence: shorten(d.Why, sentenceInRow), Bar: d.Storage.bar(), Measured: v.moment(d.Storage.Measured),
		Flavor: d.flavor(), Alarms: d.alarmList(), Pending: d.pending(), Next: v.nextCheck(d),
	}
	if ch := d.lastChange(); ch != nil {
		r.Change, r.Changed = shorten(step(ch.Kind, ch.From, ch.To), sentenceInRow), v.moment(ch.CompletionTime.Time)
	}
	return r
}

// changesOfADay counts the autopilot's changes that were completed within 24 hours.
func (v *view) changesOfADay(d *database) (n int) {
	if d.autopilot == nil {
		return 0
	}
	for _, ch := range d.autopilot.Status.Changes {
		if ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeCompleted &&
			v.now.Sub(ch.CompletionTime.Time) < 24*time.Hour {
			n++
		}
	}
	return n
}
