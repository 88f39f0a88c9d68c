// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// weekBook is what people would have seen of the week: events, patches, and how the databases fared.
type weekBook struct {
	begin time.Time // what was before is not written down

	mu    sync.Mutex
	pages map[string]*weekPage
}

// weekPage is the page of one database.
type weekPage struct {
	first, last simcloud.Instance
	events      []weekEvent
	patches     []weekPatchAt
	completed   int
	over        map[string]int // minutes at or over the threshold, by metric
	readOnly    int            // minutes
	run, worst  int            // minutes in a row over the threshold of storage: now, and at most
}

type weekEvent struct {
	at time.Time
	autopilot.Event
}

type weekPatchAt struct {
	at time.Time
	weekPatch
}

func newWeekBook(begin time.Time) *weekBook {
	return &weekBook{begin: begin, pages: map[string]*weekPage{}}
}

// page is that of one database; b.mu is held.
func (b *weekBook) page(name string) *weekPage {
	if b.pages[name] == nil {
		b.pages[name] = &weekPage{over: map[string]int{}}
	}
	return b.pages[name]
}

func (b *weekBook) recordEvent(rds *autopilot.Target, e autopilot.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.page(rds.Name)
	if e.Reason == string(v1alpha1.OutcomeCompleted) {
		p.completed++
	}
	if time.Now().Before(b.begin) {
		return
	}
	// How many checks meet a pending change depends on the scheduling of goroutines: our own patch may start one more.
	if e.Reason == string(autopilot.ReasonChangePending) {
		return
	}
	p.events = append(p.events, weekEvent{time.Now(), e})
}

func (b *weekBook) patch(patch weekPatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.page(patch.rds.Name)
	p.patches = append(p.patches, weekPatchAt{time.Now(), patch})
}

// measure notes one minute of a database.
func (b *weekBook) measure(name string, in simcloud.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.page(name)
	p.last = in
	if time.Now().Before(b.begin) {
		p.first = in
		return
	}
	for metric, over := range map[string]bool{
		"storage": 100*in.Workload.UsedGB >= float64(in.VolumeGB*autopilot.Threshold(in.VolumeGB, 90)),
		"cpu":     100*in.Workload.CPUDemand >= 90*float64(in.VCPUs),
		"memory":  100*in.Workload.MemoryDemandGB >= 90*float64(in.MemoryGB),
	} {
		if over {
			p.over[metric]++
		}
		if metric == "storage" {
			p.run++
			if !over {
				p.run = 0
			}
			p.worst = max(p.worst, p.run)
		}
	}
	if in.ReadOnly {
		p.readOnly++
	}
}

// decision returns the reason code of an event that reports a decision, and false for other events.
func (e weekEvent) decision() (reason string, ok bool) {
	switch e.Action {
	case string(autopilot.ActionGrowVolume), string(autopilot.ActionChangeFlavor):
		if e.Reason == e.Action {
			return string(autopilot.ReasonAlarmInForce), true
		}
		return e.Reason, true
	case string(autopilot.ActionNone):
		return e.Reason, true
	}
	return "", false
}

func (p *weekPage) changes() (volume, flavor int) {
	for _, patch := range p.patches {
		if patch.flavor != "" {
			flavor++
		} else {
			volume++
		}
	}
	return volume, flavor
}

func clock(at time.Time) string { return at.UTC().Format("Mon 15:04") }

// report is the golden summary, for people to read; w.book is locked.
func (w *week) report() string {
	var b strings.Builder
	total := map[string]int{}
	fmt.Fprintf(&b, "A week of %d databases\n\nMetrics come %d minutes late, the operator looks every %d minutes, growing takes 4 minutes and another flavor 10.\n",
		len(w.databases), int(weekDelay.Minutes()), int(operatorTurn.Minutes()))
	fmt.Fprintf(&b, "Minutes are those at or over the threshold, longest is in one go for storage.\n\n")
	fmt.Fprintf(&b, "%-13s %-13s %6s %7s %7s %5s %5s %6s %9s %7s\n", "", "volume GB", "growth", "storage", "longest", "cpu", "mem", "flavor", "read-only", "records")
	for _, d := range w.databases {
		p := w.book.page(d.name)
		volume, flavor := p.changes()
		records := 0
		for _, e := range p.events {
			if _, ok := e.decision(); ok {
				records++
			}
		}
		size := strconv.Itoa(p.first.VolumeGB)
		if p.last.VolumeGB != p.first.VolumeGB {
			size += " → " + strconv.Itoa(p.last.VolumeGB)
		}
		fmt.Fprintf(&b, "%-13s %-13s %6s %7s %7s %5s %5s %6s %9s %7s\n", d.name, size, some(volume), some(p.over["storage"]), some(p.worst),
			some(p.over["cpu"]), some(p.over["memory"]), some(flavor), some(p.readOnly), some(records))
		for what, n := range map[string]int{
			"growth": volume, "flavor": flavor, "storage": p.over["storage"], "cpu": p.over["cpu"], "memory": p.over["memory"], "read-only": p.readOnly,
			"records": records, "GB": p.last.VolumeGB - p.first.VolumeGB,
		} {
			total[what] += n
		}
	}
	fmt.Fprintf(&b, "%-13s %-13s %6d %7d %7s %5d %5d %6d %9d %7d\n", "in all", fmt.Sprintf("+ %d", total["GB"]), total["growth"], total["storage"], "",
		total["cpu"], total["memory"], total["flavor"], total["read-only"], total["records"])
	reasons := map[string]int{}
	for _, d := range w.databases {
		w.book.page(d.name).write(&b, d, reasons)
	}
	fmt.Fprintf(&b, "\nRecords by reason\n\n")
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&b, "  %4d %s\n", reasons[reason], reason)
	}
	return b.String()
}

func some(n int) string {
	if n == 0 {
		return "·"
	}
	return strconv.Itoa(n)
}

// write writes what was done, when and why, and what was answered instead.
func (p *weekPage) write(b *strings.Builder, d weekDatabase, reasons map[string]int) {
	fmt.Fprintf(b, "\n%s: %s %s, %s, %d GB: %s\n", d.name, p.first.Engine, strings.ToLower(p.first.Type), p.first.Flavor, p.first.VolumeGB, d.about)
	type answer struct {
		key, first string
		count      int
		last       time.Time
	}
	var answers []*answer
	for _, e := range p.events {
		reason, ok := e.decision()
		done := ok && e.Reason == e.Action
		switch {
		case done:
			fmt.Fprintf(b, "  %s  %s\n", clock(e.at), e.Note)
			fallthrough
		case ok:
			reasons[reason]++
		}
		if done || e.Reason == "Completed" { // each done thing is completed once, which the code asserts
			continue
		}
		key := e.Reason
		if e.Warning {
			key += " (warning)"
		}
		i := slices.IndexFunc(answers, func(a *answer) bool { return a.key == key })
		if i < 0 {
			answers = append(answers, &answer{key: key, first: clock(e.at) + "  " + key + ": " + e.Note})
			i = len(answers) - 1
		}
		answers[i].count++
		answers[i].last = e.at
	}
	if len(answers) > 0 && slices.ContainsFunc(p.events, func(e weekEvent) bool { return e.Reason == e.Action }) {
		b.WriteString("  ---\n")
	}
	for _, a := range answers {
		fmt.Fprintf(b, "  %s", a.first)
		if a.count > 1 {
			fmt.Fprintf(b, " … %d times, last %s", a.count, clock(a.last))
		}
		b.WriteString("\n")
	}
}
