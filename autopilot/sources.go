// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// mostPercent is the largest percentage that can be true, because Cloud Eye rounds.
	mostPercent = 101
	// fullAtMost is the largest used space, as a multiple of the volume, that counts as full. 100 GiB are 107.4 GB.
	fullAtMost = 1.1
	// inMessage stands for the value of the newest message among the readings of Cloud Eye.
	inMessage = "message"
)

// Point is one measurement.
type Point struct {
	Time  time.Time
	Value float64
}

// Past holds the measurements of one database over a time span, oldest first.
type Past struct {
	UsedGB, SizeGB []Point // of the volume
	Percent        map[v1alpha1.Metric][]Point
}

// AlarmState is the state of an alarm rule in Cloud Eye.
type AlarmState struct {
	State v1alpha1.State
	Since time.Time
}

// EvidenceRequest names the newest datapoints of some metrics of an instance.
type EvidenceRequest struct {
	Names         []string  // Cloud Eye's names of the metrics
	Dimension     string    // name:value of the rule's dimension; empty means the dimension of the instance
	PeriodSeconds int       // 1 means raw data
	NotBefore     time.Time // reject cached values that were read before this time, because they do not contain the news
}

// Readings holds what Cloud Eye has of some metrics, by its names of them.
type Readings map[string]Reading

// Reading holds the newest datapoints of one metric, oldest first, or why they could not be read.
type Reading struct {
	Points []Point
	Err    error
}

// source is one way to know the value of a metric.
type source struct {
	name  string
	needs []string // the metrics by Cloud Eye's names, that of the value first; or inMessage
	most  float64  // the largest value that can be true
	inGB  func(Point) float64
}

// sources returns the sources of a metric, best first. One sound source is enough, whatever the others hold.
func (c Case) sources(row MetricRow, r Readings) []source {
	mostGB := fullAtMost * float64(c.Instance.VolumeGB)
	ofList := func(p Point) float64 { return p.Value / 100 * c.sizeFor(0, p.Time) }
	ofTotal := func(p Point) (gb float64) {
		for _, total := range r[row.TotalGB].Points { // the two may have been read at different times
			if total.Time.Equal(p.Time) && total.Value <= mostGB {
				gb = p.Value / 100 * total.Value
			}
		}
		return gb
	}
	all := []source{
		{"used space", []string{row.UsedGB}, mostGB, func(p Point) float64 { return p.Value }},
		{"percentage of the total size", []string{row.CloudEye, row.TotalGB}, mostPercent, ofTotal},
		{"percentage of the listed size", []string{row.CloudEye}, mostPercent, ofList},
		{"newest message", []string{inMessage}, mostPercent, ofList},
	}
	if !row.InGB() {
		return []source{{"percentage", []string{row.CloudEye}, mostPercent, nil}, all[3]}
	}
	return all
}

// Measure returns the evidence of the first source that is sound. While the storage alarm is in force and the used
// space is below the threshold, a higher percentage counts instead. For CPU and memory, the message counts only if Cloud
// Eye does not answer. read reads metrics by Cloud Eye's names. If Cloud Eye has no sound source, its error is returned.
func (c Case) Measure(a Alarm, read func(names []string) Readings) (e Evidence, unread error) {
	row, r := Row(a.Metric), Readings{inMessage: a.reading(c.Now)}
	var missing []string
	for _, s := range c.sources(row, r) {
		isMessage := s.needs[0] == inMessage
		switch {
		case isMessage && e.Present(): // no percentage is sound
			return e, nil
		case isMessage && !row.InGB() && unread == nil:
			continue
		case errors.Is(unread, ErrOutage):
			read = func(names []string) Readings { return Readings{names[0]: {Err: ErrOutage}} }
		}
		if _, isRead := r[s.needs[0]]; !isRead {
			maps.Copy(r, read(s.needs))
			unread = cmp.Or(unread, r[s.needs[0]].Err)
		}
		found, flaw := c.newest(row, r[s.needs[0]], s)
		if flaw != nil {
			missing = append(missing, s.name+": "+flaw.Error())
			continue
		}
		isLow := s.needs[0] == row.UsedGB && a.InForce(c.Now) && !c.IsFull(found)
		if found.UsedGB >= e.UsedGB {
			e = found
		}
		if !isMessage && !isLow {
			return e, nil
		}
	}
	e.Missing = strings.Join(missing, "; ")
	return e, unread
}

// newest returns the newest value of a source that is sound, or why there is none: in its range, finite, recent and not
// dated ahead, and the size of the volume at that time is known.
func (c Case) newest(row MetricRow, r Reading, s source) (Evidence, error) {
	flaw := r.Err
	for _, p := range slices.Backward(r.Points) {
		text := "no used space at that time" // no database is empty
		switch {
		case !(p.Value >= 0 && p.Value <= s.most): // also NaN
			text = fmt.Sprintf("%.4g cannot be true", p.Value)
		case p.Time.After(c.Now.Add(aheadAtMost)):
			text = "dated ahead, " + TimeText(p.Time)
		case c.Now.Sub(p.Time) > EvidenceAge+2*row.MeasuredOver(c.Spec):
			text = "too old, of " + TimeText(p.Time)
		case !row.InGB():
			return Evidence{Time: p.Time, Percent: p.Value}, nil
		case s.inGB(p) > 0:
			gb := s.inGB(p)
			return Evidence{Time: p.Time, UsedGB: min(gb, c.sizeFor(gb, p.Time))}, nil
		}
		flaw = cmp.Or(flaw, errors.New(text))
	}
	return Evidence{}, cmp.Or(flaw, errors.New("no value"))
}

// reading returns the value of the newest message, unless Cloud Eye has reported the end of its alarm.
func (a Alarm) reading(now time.Time) Reading {
	if a.Signal == nil || a.Signal.DatapointTime == nil {
		return Reading{}
	}
	value, err := strconv.ParseFloat(a.Signal.ValuePercent, 64)
	if err != nil || a.State == v1alpha1.StateOK && a.Signalled() && !a.Settling(now) {
		return Reading{}
	}
	return Reading{Points: []Point{{a.Signal.DatapointTime.Time, value}}}
}

// sizeFor returns the smallest size in GB that the volume may have had at a time of the cloud's clock with that much
// used space. Near a growth, two sizes are possible. With the larger one, the same percentage would grow the volume
// twice. The next value comes within minutes.
func (c Case) sizeFor(usedGB float64, at time.Time) float64 {
	size := float64(c.Instance.VolumeGB)
	for _, ch := range c.Status.Changes { // the newest is the first
		isGrowth := ch.Kind == v1alpha1.KindVolume && ch.State == v1alpha1.StateCompleted
		from := float64(Gigabytes(ch.From))
		if isGrowth && usedGB <= fullAtMost*from && !at.After(ch.EndTime.Add(ClockSkew)) {
			size = from
		}
	}
	return size
}
