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

// database is a row of the overview, and the head of a database's page.
type database struct {
	Namespace, Name string
	judgement
	Mode    v1alpha1.Mode
	Storage storage

	autopilot *v1alpha1.RdsAutopilot // nil if there is none
	target    *autopilot.Target      // nil if there is no Rds
}

// storage describes the volume, in GB.
type storage struct {
	VolumeGB, MaxGB  int
	ThresholdPercent int // of the alarm
	UsedGB           float64
	Percent          float64 // used part of the volume; negative without a measurement
	Measured         time.Time
}

// summarize sets the fields by which the overview filters and sorts.
func (v *view) summarize(d *database) {
	d.Mode, d.Storage.Percent = v.mode, -1
	if a := d.autopilot; a != nil {
		d.Mode = autopilot.NarrowerMode(v.mode, cmp.Or(a.Spec.Mode, v1alpha1.ModeAuto))
		d.Storage = storageOf(a)
	}
	d.judgement = v.judge(d)
}

// storageOf returns the newest measurement of the used space in the status: of a sweep, a signal, an intent or a
// decision.
func storageOf(a *v1alpha1.RdsAutopilot) storage {
	s := storage{MaxGB: int(cmp.Or(a.Spec.Storage.MaxGB, a.Status.MaxGB)), Percent: -1}
	if a.Status.Instance == nil {
		return s
	}
	s.VolumeGB = int(a.Status.Instance.VolumeGB)
	s.ThresholdPercent = autopilot.Threshold(s.VolumeGB, int(a.Spec.Storage.ThresholdPercent))
	var then float64
	then, s.Measured = newestValue(&a.Status, v1alpha1.MetricStorage)
	if s.VolumeGB == 0 {
		return s
	}
	swept, ok := a.Status.Used.Value()
	switch {
	case ok && !a.Status.Used.Time.Time.Before(s.Measured):
		s.UsedGB, s.Measured = swept, a.Status.Used.Time.Time
	case s.Measured.IsZero():
		return s
	default:
		s.UsedGB = then * float64(sizeAt(a, s.Measured)) / 100
	}
	s.Percent = 100 * s.UsedGB / float64(s.VolumeGB)
	return s
}

// newestValue returns the newest value of a metric in percent that a signal, an intent or a decision has stored. The
// time is zero if there is none.
func newestValue(s *v1alpha1.Status, metric v1alpha1.Metric) (percent float64, measured time.Time) {
	add := func(value string, t time.Time) {
		p, err := strconv.ParseFloat(value, 64)
		if err == nil && p >= 0 && p <= 100 && t.After(measured) {
			percent, measured = p, t
		}
	}
	for _, g := range s.Intake.Signals {
		if g.Metric == metric && g.DatapointTime != nil {
			add(g.ValuePercent, g.DatapointTime.Time)
		}
	}
	for _, i := range s.Intents() {
		// The value of a flavor that serves two metrics is that of the first.
		if i.Kind == v1alpha1.KindVolume && metric == v1alpha1.MetricStorage || len(i.Metrics) > 0 && i.Metrics[0] == metric {
			add(i.ValuePercent, i.EvidenceTime.Time)
		}
	}
	for _, r := range s.Decisions {
		if r.Metric == metric {
			add(r.ValuePercent, later(r.Time.Time, r.LastTime.Time)) // the value belongs to the last repetition
		}
	}
	return percent, measured
}

// sizeAt returns the size of the volume at t: the initial size of the first growth that was completed after t.
func sizeAt(a *v1alpha1.RdsAutopilot, t time.Time) int {
	size := int(a.Status.Instance.VolumeGB)
	for _, ch := range a.Status.Changes { // newest first
		if ch.Kind != v1alpha1.KindVolume || ch.Outcome != v1alpha1.OutcomeCompleted {
			continue
		}
		if !ch.CompletionTime.Truncate(time.Second).After(t) { // some times are stored in whole seconds
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

// text describes the storage; the bar is hidden from screen readers.
func (s storage) text() string {
	switch {
	case s.VolumeGB == 0:
		return "unknown"
	case s.Percent < 0:
		return fmt.Sprintf("%d GB, at most %d GB", s.VolumeGB, s.MaxGB)
	}
	return fmt.Sprintf("%.0f of %d GB used (%.0f\u00a0%%), at most %d GB", s.UsedGB, s.VolumeGB, s.Percent, s.MaxGB)
}

// bar draws the storage. The whole bar is the volume, and the positions are in percent of it.
type bar struct {
	Used      string // empty without a measurement
	Threshold string // of the alarm; empty if the size is unknown
	Text      string
}

func (s storage) bar() bar {
	b := bar{Text: s.text()}
	if s.VolumeGB == 0 {
		return b
	}
	b.Threshold = strconv.Itoa(s.ThresholdPercent)
	if s.Percent >= 0 {
		b.Used = strconv.FormatFloat(min(100, s.Percent), 'f', 1, 64)
	}
	return b
}

// path returns the relative path from the overview to the database's page.
func (d *database) path() string {
	return "databases/" + url.PathEscape(d.Namespace) + "/" + url.PathEscape(d.Name)
}

// flavor returns the instance's last seen flavor.
func (d *database) flavor() string {
	if d.autopilot == nil || d.autopilot.Status.Instance == nil {
		return ""
	}
	return d.autopilot.Status.Instance.Flavor
}

// alarm is an alarm in force.
type alarm struct {
	Metric string
	Value  string // the newest value and the threshold
}

// alarmList returns the alarms in force.
func (d *database) alarmList() (all []alarm) {
	if d.autopilot == nil {
		return nil
	}
	for _, r := range d.autopilot.Status.Alarms.Rules {
		if r.State == v1alpha1.StateAlarm {
			all = append(all, alarm{string(r.Metric), d.value(r.Metric, r.ThresholdPercent)})
		}
	}
	return all
}

// alarms returns the metrics of the alarms in force as one text.
func (d *database) alarms() string {
	var metrics []string
	for _, a := range d.alarmList() {
		metrics = append(metrics, a.Metric)
	}
	return strings.Join(metrics, ", ")
}

// value returns the newest stored value of a metric beside the threshold of its rule.
func (d *database) value(metric v1alpha1.Metric, threshold int32) string {
	percent, measured := newestValue(&d.autopilot.Status, metric)
	if metric == v1alpha1.MetricStorage && d.Storage.Percent >= 0 {
		percent, measured = d.Storage.Percent, d.Storage.Measured
	}
	limit := fmt.Sprintf("alarm at %d\u00a0%%", threshold)
	if measured.IsZero() {
		return limit
	}
	return fmt.Sprintf("%.1f\u00a0%%, %s", percent, limit)
}

// pending returns the changes in progress: the autopilot's and those that others requested.
func (d *database) pending() string {
	if d.autopilot == nil {
		return ""
	}
	var changes []string
	for _, i := range d.autopilot.Status.Intents() {
		changes = append(changes, step(i.Kind, i.From, i.To))
	}
	for _, u := range d.autopilot.Status.Unfulfilled {
		changes = append(changes, step(u.Kind, "", u.To)+" (requested by others)")
	}
	return strings.Join(changes, "; ")
}

// lastChange returns the newest change, or nil.
func (d *database) lastChange() *v1alpha1.Change {
	if d.autopilot == nil || len(d.autopilot.Status.Changes) == 0 {
		return nil
	}
	return &d.autopilot.Status.Changes[0]
}

// changed returns the completion time of the newest change, or zero.
func (d *database) changed() time.Time {
	if ch := d.lastChange(); ch != nil {
		return ch.CompletionTime.Time
	}
	return time.Time{}
}

// nextCheck returns the latest time of the leader's next check, and its reason. A message triggers a check at once.
func (v *view) nextCheck(d *database) string {
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
