// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The size of a plot in SVG units, which the page scales.
const (
	plotWidth, plotHeight = 420.0, 190.0
	plotLeft, plotRight   = 38.0, 104.0 // space for the numbers, and for the names of the lines
	plotTop, plotBottom   = 18.0, 24.0
	labelDistance         = 13.0       // least distance of two names
	letters               = "ABCDEFGH" // marks of changes; further changes have none
	gapOf                 = 3          // a line ends at a gap longer than this multiple of the usual distance
)

// plots holds all plots of a database.
type plots struct {
	Error string
	Spans []spanPlots
}

type spanPlots struct {
	Label string
	Empty bool // none of the plots has data
	Plots []plot
	Marks []mark
}

// plot is a picture.
type plot struct {
	Title, Summary string
	Lines          []line
	Marks          []mark
	X, Y           []tick
	Empty          bool
}

// line is a curve. It has several pieces if measurements are missing.
type line struct {
	Class          string // of the stylesheet
	Pieces         []string
	Label          string
	labelY         float64 // vertical position of the name, at the end of the line
	LabelX, LabelY string  // position of the name as drawn
}

// mark is a change.
type mark struct {
	X, Letter, Text string
	Time            moment
}

// tick is a number at an axis.
type tick struct{ At, Text string }

// plots draws the measurements. It returns nil if there are none.
func (v *view) plots(d *database, measured pasts, failed error) *plots {
	if failed != nil {
		return &plots{Error: failed.Error()}
	}
	if len(measured) == 0 || d.autopilot == nil || d.autopilot.Status.Instance == nil {
		return nil
	}
	all := &plots{}
	for i, s := range spans() {
		past := measured[i]
		if len(past.UsedGB) == 0 { // Cloud Eye lacks it; a decision uses the same fallback
			past.UsedGB = usedSpace(past)
		}
		drawn := spanPlots{Label: s.Label}
		from := v.from(past, s)
		for _, ch := range slices.Backward(d.autopilot.Status.Changes) { // oldest first
			if t := ch.CompletionTime.Time; !t.Before(from) && !t.After(v.now) && len(drawn.Marks) < len(letters) {
				drawn.Marks = append(drawn.Marks, mark{units(x(t, from, v.now)), letters[len(drawn.Marks) : len(drawn.Marks)+1],
					step(ch.Kind, ch.From, ch.To), v.moment(t)})
			}
		}
		drawn.Plots = append(drawn.Plots, v.storagePlot(d.autopilot, past, from, drawn.Marks))
		for _, m := range autopilot.MetricTable() {
			if !m.InGB() {
				drawn.Plots = append(drawn.Plots, v.percentPlot(m, d.autopilot.Spec, past.Percent[m.Metric], from, drawn.Marks))
			}
		}
		drawn.Empty = !slices.ContainsFunc(drawn.Plots, func(p plot) bool { return !p.Empty })
		all.Spans = append(all.Spans, drawn)
	}
	return all
}

// maxDrawn is the largest value that a plot shows: a thousand times the largest volume in GB. A larger one is an error
// of the cloud, and its axis would have hundreds of digits.
const maxDrawn = 4e6

// drawable returns the measurements without values that cannot be true. It does not modify past.
func drawable(past autopilot.Past) autopilot.Past {
	possible := func(points []autopilot.Point) (all []autopilot.Point) {
		for _, p := range points {
			if p.Value >= 0 && p.Value <= maxDrawn { // false for NaN
				all = append(all, p)
			}
		}
		return all
	}
	percent := map[v1alpha1.Metric][]autopilot.Point{}
	for metric, points := range past.Percent {
		percent[metric] = possible(points)
	}
	past.UsedGB, past.SizeGB, past.Percent = possible(past.UsedGB), possible(past.SizeGB), percent
	return past
}

// usedSpace calculates the used space from percentage and size.
func usedSpace(p autopilot.Past) (used []autopilot.Point) {
	sizes := map[time.Time]float64{}
	for _, s := range p.SizeGB {
		sizes[s.Time] = s.Value
	}
	for _, u := range p.Percent[v1alpha1.MetricStorage] {
		if size, ok := sizes[u.Time]; ok {
			used = append(used, autopilot.Point{Time: u.Time, Value: u.Value / 100 * size})
		}
	}
	return used
}

// from returns the start of a span's plots: the first measurement, but at most the span's length ago.
func (v *view) from(past autopilot.Past, s span) time.Time {
	first := v.now
	for _, points := range append([][]autopilot.Point{past.UsedGB, past.SizeGB}, past.Percent[v1alpha1.MetricCPU],
		past.Percent[v1alpha1.MetricMemory]) {
		if len(points) > 0 && points[0].Time.Before(first) {
			first = points[0].Time
		}
	}
	if begin := v.now.Add(-s.length); first.Before(begin) || first.Equal(v.now) {
		return begin
	}
	return first
}

func (v *view) storagePlot(a *v1alpha1.RdsAutopilot, past autopilot.Past, from time.Time, marks []mark) plot {
	top := 0.0
	var threshold []autopilot.Point
	for _, p := range past.SizeGB {
		top = max(top, p.Value)
		percent := autopilot.Threshold(int(math.Round(p.Value)), int(a.Spec.Storage.ThresholdPercent))
		threshold = append(threshold, autopilot.Point{Time: p.Time, Value: p.Value * float64(percent) / 100})
	}
	for _, p := range past.UsedGB {
		top = max(top, p.Value)
	}
	p := plot{Title: "Used space in GB", Marks: marks}
	p.Empty = len(past.UsedGB) < 2
	if p.Empty {
		return p
	}
	p.axes(from, v.now, top*1.08)
	p.Lines = []line{
		curve("size", "size %s GB", stairs(past.SizeGB), from, v.now, top*1.08),
		curve("threshold", "alarm at %s GB", stairs(threshold), from, v.now, top*1.08),
		curve("used", "used %s GB", past.UsedGB, from, v.now, top*1.08),
	}
	p.finish(past.UsedGB, "GB")
	return p
}

func (v *view) percentPlot(m autopilot.MetricRow, spec v1alpha1.Spec, points []autopilot.Point, from time.Time,
	marks []mark) plot {
	p := plot{Title: sentenceCase(m.Label) + " in percent", Marks: marks}
	p.Empty = len(points) < 2
	if p.Empty {
		return p
	}
	p.axes(from, v.now, 105)
	if m.Enabled(spec) {
		at := float64(m.ConfiguredThreshold(spec))
		p.Lines = append(p.Lines, curve("threshold", "alarm at %s %%",
			[]autopilot.Point{{Time: from, Value: at}, {Time: v.now, Value: at}}, from, v.now, 105))
	}
	p.Lines = append(p.Lines, curve("used", "used %s %%", points, from, v.now, 105))
	p.finish(points, "percent")
	return p
}

// finish sets the summary for screen readers, and moves the names of the lines apart.
func (p *plot) finish(points []autopilot.Point, unit string) {
	low, high := points[0].Value, points[0].Value
	for _, q := range points {
		low, high = min(low, q.Value), max(high, q.Value)
	}
	p.Summary = fmt.Sprintf("%s: from %s to %s %s, between %s and %s", p.Title, amount(points[0].Value),
		amount(points[len(points)-1].Value), unit, amount(low), amount(high))
	for _, l := range p.Lines {
		if l.Class != "used" {
			p.Summary += ", " + l.Label
		}
	}
	slices.SortStableFunc(p.Lines, func(a, b line) int { return cmp.Compare(a.labelY, b.labelY) })
	for i := range p.Lines[:max(0, len(p.Lines)-1)] {
		p.Lines[i+1].labelY = max(p.Lines[i+1].labelY, p.Lines[i].labelY+labelDistance)
	}
	for i := range p.Lines {
		p.Lines[i].LabelX, p.Lines[i].LabelY = units(plotWidth-plotRight+6), units(p.Lines[i].labelY)
	}
}

// stairs holds each value until the next, because a size changes at once.
func stairs(points []autopilot.Point) (all []autopilot.Point) {
	for i, p := range points {
		if i > 0 {
			all = append(all, autopilot.Point{Time: p.Time, Value: points[i-1].Value})
		}
		all = append(all, p)
	}
	return all
}

// curve returns the line through points. label contains %s for the last value.
func curve(class, label string, points []autopilot.Point, from, to time.Time, top float64) line {
	l := line{Class: class}
	if len(points) == 0 {
		return l
	}
	gap := gapOf * usualDistance(points)
	var piece []string
	before := points[0].Time
	for _, p := range points {
		if p.Time.Sub(before) > gap {
			l.Pieces, piece = append(l.Pieces, strings.Join(piece, " ")), nil
		}
		before = p.Time
		if !p.Time.Before(from) {
			piece = append(piece, units(x(p.Time, from, to))+","+units(y(p.Value, top)))
		}
	}
	l.Pieces = append(l.Pieces, strings.Join(piece, " "))
	last := points[len(points)-1].Value
	l.Label, l.labelY = fmt.Sprintf(label, amount(last)), y(last, top)+4
	return l
}

// usualDistance returns the median distance of two measurements.
func usualDistance(points []autopilot.Point) time.Duration {
	var distances []time.Duration
	for i, p := range points[1:] {
		if d := p.Time.Sub(points[i].Time); d > 0 {
			distances = append(distances, d)
		}
	}
	if len(distances) == 0 {
		return 0
	}
	slices.Sort(distances)
	return distances[len(distances)/2]
}

// axes sets the numbers at both axes.
func (p *plot) axes(from, to time.Time, top float64) {
	every := niceStep(top / 4)
	for i := range 5 { // a loop over the values would not end at infinity
		if at := float64(i) * every; at <= top {
			p.Y = append(p.Y, tick{units(y(at, top)), strconv.FormatFloat(at, 'f', -1, 64)})
		}
	}
	step, layout := timeStep(to.Sub(from))
	for t := from.Truncate(step).Add(step); !t.After(to); t = t.Add(step) {
		p.X = append(p.X, tick{units(x(t, from, to)), t.UTC().Format(layout)})
	}
}

// niceStep returns the smallest number of at least least that is 1, 2 or 5 times a power of ten.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(least, 0.1))))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= least {
			return n * power
		}
	}
	return 10 * power
}

// timeStep returns a step with at most six numbers at the axis, and the format of the numbers.
func timeStep(span time.Duration) (step time.Duration, layout string) {
	const day = 24 * time.Hour
	for _, step := range []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 3 * day,
	} {
		if span/step < 6 {
			switch {
			case step < time.Minute:
				return step, "15:04:05"
			case step < 12*time.Hour:
				return step, "15:04"
			case step < day:
				return step, "2 Jan 15:04"
			}
			return step, "2 Jan"
		}
	}
	return 7 * day, "2 Jan"
}

func x(t, from, to time.Time) float64 {
	return plotLeft + (plotWidth-plotLeft-plotRight)*float64(t.Sub(from))/float64(max(to.Sub(from), 1))
}

func y(value, top float64) float64 {
	return plotHeight - plotBottom - (plotHeight-plotTop-plotBottom)*max(0, min(value/max(top, 1e-9), 1))
}

func units(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// amount returns x with one digit after the point if it is below 10, else with none.
func amount(x float64) string {
	if x > -10 && x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
