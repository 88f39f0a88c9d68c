// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// database is one row of the overview, and what the page of a database begins with.
type database struct {
	Namespace, Name string
	State           state
	Why             string
	Mode            v1alpha1.Mode
	Storage         storage

	autopilot *v1alpha1.RdsAutopilot // nil where there is none
	target    *autopilot.Target      // nil where there is no Rds
}

// storage is what is known of the volume, in GB.
type storage struct {
	VolumeGB, MaxGB int
	UsedGB          float64
	Percent         float64 // used of the volume; negative where nobody measured
	Measured        time.Time
}

// summarize fills in what the table is filtered and sorted by.
func (v *view) summarize(d *database) {
	d.Mode, d.Storage.Percent = v.mode, -1
	if a := d.autopilot; a != nil {
		d.Mode = autopilot.NarrowerMode(v.mode, cmp.Or(a.Spec.Mode, v1alpha1.ModeAuto))
		d.Storage = storageOf(a)
	}
	d.State, d.Why = v.judge(d)
}

// storageOf finds the newest measurement of the used space that is in the status: in a signal, a decision or a change.
func storageOf(a *v1alpha1.RdsAutopilot) storage {
	s := storage{MaxGB: int(a.Spec.Storage.MaxGB), Percent: -1}
	if a.Status.Instance == nil {
		return s
	}
	s.VolumeGB = int(a.Status.Instance.VolumeGB)
	then := 0.0
	measured := func(value string, t time.Time) {
		percent, err := strconv.ParseFloat(value, 64)
		if err == nil && percent >= 0 && percent <= 100 && t.After(s.Measured) {
			then, s.Measured = percent, t
		}
	}
	for _, g := range a.Status.Intake.Signals {
		if g.Metric == v1alpha1.MetricStorage && g.DatapointTime != nil {
			measured(g.ValuePercent, g.DatapointTime.Time)
		}
	}
	for _, i := range a.Status.Intents() {
		if i.Kind == v1alpha1.KindVolume {
			measured(i.ValuePercent, i.EvidenceTime.Time)
		}
	}
	for _, r := range a.Status.Decisions {
		// The message goes with the newest repetition, and so does the value.
		if r.Metric == v1alpha1.MetricStorage {
			measured(r.ValuePercent, later(r.Time.Time, r.LastTime.Time))
		}
	}
	if s.Measured.IsZero() || s.VolumeGB == 0 {
		return s
	}
	s.UsedGB = then * float64(sizeAt(a, s.Measured)) / 100
	s.Percent = 100 * s.UsedGB / float64(s.VolumeGB)
	return s
}

// sizeAt is the size of the volume at a time: what the first growth after it began with.
func sizeAt(a *v1alpha1.RdsAutopilot, t time.Time) int {
	size := int(a.Status.Instance.VolumeGB)
	for _, ch := range a.Status.Changes { // newest first
		if ch.Kind != v1alpha1.KindVolume || ch.Outcome != v1alpha1.OutcomeCompleted {
			continue
		}
		if !ch.CompletionTime.Truncate(time.Second).After(t) { // some times are kept to the second
			break
		}
		if from, err := strconv.Atoi(ch.From); err == nil {
			size = from
		}
	}
	return size
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// text says it in words; the bar is for the eyes only.
func (s storage) text() string {
	switch {
	case s.VolumeGB == 0:
		return "not known"
	case s.Percent < 0:
		return fmt.Sprintf("%d GB, at most %d GB", s.VolumeGB, s.MaxGB)
	}
	return fmt.Sprintf("%.0f of %d GB used (%.0f\u00a0%%), at most %d GB", s.UsedGB, s.VolumeGB, s.Percent, s.MaxGB)
}

// leastVolume is the part of the bar that a volume has at least, in percent: the used space in it must be seen.
const leastVolume = 40

// bar is the storage as it is shown. Its widths are in percent of the bar, which is the cap.
type bar struct {
	VolumeWidth string // empty where there is nothing to draw
	UsedWidth   string // empty where nobody measured
	Text        string
}

func (s storage) bar() bar {
	b := bar{Text: s.text()}
	if s.VolumeGB == 0 {
		return b
	}
	width := max(leastVolume, min(100, 100*float64(s.VolumeGB)/float64(max(s.MaxGB, 1))))
	b.VolumeWidth = strconv.FormatFloat(width, 'f', 1, 64)
	if s.Percent >= 0 {
		b.UsedWidth = strconv.FormatFloat(width*min(1, s.Percent/100), 'f', 1, 64)
	}
	return b
}

// path is the way from the overview to the database's page.
func (d *database) path() string {
	return "databases/" + url.PathEscape(d.Namespace) + "/" + url.PathEscape(d.Name)
}

// flavor is the one that the instance was last seen with.
func (d *database) flavor() string {
	if d.autopilot == nil || d.autopilot.Status.Instance == nil {
		return ""
	}
	return d.autopilot.Status.Instance.Flavor
}

// alarms are the metrics whose rule is in alarm.
func (d *database) alarms() string {
	var metrics []string
	if d.autopilot != nil {
		for _, r := range d.autopilot.Status.Alarms.Rules {
			if r.State == v1alpha1.StateAlarm {
				metrics = append(metrics, string(r.Metric))
			}
		}
	}
	return strings.Join(metrics, ", ")
}

// pending are the changes under way: ours, and what others asked for.
func (d *database) pending() string {
	if d.autopilot == nil {
		return ""
	}
	var changes []string
	for _, i := range d.autopilot.Status.Intents() {
		changes = append(changes, step(i.Kind, i.From, i.To))
	}
	for _, u := range d.autopilot.Status.Unfulfilled {
		changes = append(changes, step(u.Kind, "", u.To)+" (asked for by others)")
	}
	return strings.Join(changes, "; ")
}

// lastChange is the newest change; nil where there is none.
func (d *database) lastChange() *v1alpha1.Change {
	if d.autopilot == nil || len(d.autopilot.Status.Changes) == 0 {
		return nil
	}
	return &d.autopilot.Status.Changes[0]
}

func (d *database) changed() time.Time {
	if ch := d.lastChange(); ch != nil {
		return ch.CompletionTime.Time
	}
	return time.Time{}
}

// nextLook says when the leader looks again at the latest, and why. A message is looked at as soon as it comes.
func (v *view) nextLook(d *database) string {
	switch {
	case d.State == off || d.State == noAutopilot:
		return "none: " + strings.ToLower(d.State.row().Label)
	case d.pending() != "":
		return "within " + duration.HumanDuration(min(v.recheck, v.sweep)) + ": change pending"
	case d.alarms() != "":
		return "within " + duration.HumanDuration(v.sweep) + ": alarm in force"
	}
	return "within " + duration.HumanDuration(v.sweep) + ": sweep"
}
