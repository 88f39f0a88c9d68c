// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	fromDatabase = "../../" // path from the page of a database to the overview

	notWatched = "This service watches no database of that name."
)

type condition struct {
	Type, Status, Message string
	Reason                reason
	Since                 moment
}

type rule struct {
	Metric, AlarmID, Dimension, State string
	Value                             string // the newest value and the threshold
	Since                             moment
}

// load is the newest value of the CPU or the memory.
type load struct {
	Label, Text string
	Measured    moment
}

// explanation is a part of status.insight.
type explanation struct {
	Text   string
	Time   moment  // of the last successful read
	Failed *moment // of a later read
}

// finding says why a larger flavor may not help.
type finding struct {
	Reason reason
	Text   string
}

type detail struct {
	row
	Conditions []condition
	Timeline   []entry
	ReadOnly   *moment      // since when the database is read-only
	Cause      *explanation // what fills the volume
	CausePage  reason       // the cause's name and its runbook page
	Cap        *explanation // when the largest volume is full
	Resized    *explanation // the last flavor, with the load before and after it
	Findings   []finding    // why it may not help
	Loads      []load

	HasAutopilot, HasRds bool
	InstanceID           string
	Wanted               string // requested by the Rds
	Instance             *v1alpha1.Instance
	Zones, Nodes         string
	Cloud                v1alpha1.Alarms
	Rules                []rule
	Plots                *plots // nil without measurements
}

// serveDatabase waits for the cloud before it takes the slot for rendering, so that it does not block other pages.
func (p *pages) serveDatabase(w http.ResponseWriter, r *http.Request) {
	namespace, name := named(r)
	var measured pasts
	var failed error
	if a, ok := p.Cache.Autopilot(namespace, name); ok && p.Past != nil && a.Status.Instance != nil &&
		a.Status.Instance.ID != "" {
		measured, failed = p.pasts.of(r.Context(), namespace, name, pastPatience)
	}
	p.serve(func(_ *http.Request, v *view) answer {
		return p.showDatabase(v, namespace, name, measured, failed)
	})(w, r)
}

// named returns namespace and name from the path, which chi does not unescape. They are empty if the escaping is
// invalid, and no database has empty names.
func named(r *http.Request) (namespace, name string) {
	namespace, err := url.PathUnescape(chi.URLParam(r, "namespace"))
	name, err2 := url.PathUnescape(chi.URLParam(r, "name"))
	if err != nil || err2 != nil {
		return "", ""
	}
	return namespace, name
}

func (p *pages) showDatabase(v *view, namespace, name string, measured pasts, failed error) answer {
	d := database{Namespace: namespace, Name: name}
	if a, ok := p.Cache.Autopilot(namespace, name); ok {
		d.autopilot = a
	}
	d.target = p.Cache.Target(namespace, name)
	if d.autopilot == nil && d.target == nil {
		return answer{http.StatusNotFound, p.failure, fromDatabase, "Not found", notWatched}
	}
	v.summarize(&d)
	x := v.detail(&d)
	x.Plots = v.plots(&d, measured, failed)
	x.Loads = v.loads(&d, measured)
	return answer{http.StatusOK, p.database, fromDatabase, d.Namespace + "/" + d.Name, x}
}

func (v *view) detail(d *database) *detail {
	x := &detail{row: v.row(d), HasAutopilot: d.autopilot != nil, HasRds: d.target != nil && !d.target.NoRds}
	x.Sentence = d.Why // not shortened
	if t := d.target; t != nil {
		x.InstanceID = t.InstanceID
		if x.HasRds {
			x.Wanted = fmt.Sprintf("%d GB, flavor %s", t.Wanted.VolumeGB, t.Wanted.Flavor)
		}
	}
	if d.autopilot == nil {
		return x
	}
	s := &d.autopilot.Status
	for _, c := range s.Conditions {
		x.Conditions = append(x.Conditions, condition{c.Type, string(c.Status), c.Message, v.reason(c.Reason),
			v.moment(c.LastTransitionTime.Time)})
	}
	x.Timeline = v.timeline(s)
	if s.ReadOnly != nil {
		x.ReadOnly = new(v.moment(s.ReadOnly.SinceTime.Time))
	}
	if s.Insight != nil {
		v.explain(x, *s.Insight)
	}
	x.Cloud = s.Alarms
	x.Instance = s.Instance
	if x.Instance != nil {
		x.Zones, x.Nodes = strings.Join(x.Instance.Zones, ", "), strings.Join(x.Instance.NodeIDs, ", ")
	}
	for _, r := range s.Alarms.Rules {
		one := rule{Metric: string(r.Metric), AlarmID: r.AlarmID, Dimension: r.Dimension, State: string(r.State),
			Value: d.value(r.Metric, r.ThresholdPercent)}
		if r.StateTime != nil {
			one.Since = v.moment(r.StateTime.Time)
		}
		x.Rules = append(x.Rules, one)
	}
	return x
}

// explain enters what status.insight has.
func (v *view) explain(x *detail, i v1alpha1.Insight) {
	read := func(text string, at metav1.Time, failed *metav1.Time) *explanation {
		e := &explanation{Text: text, Time: v.moment(at.Time)}
		if failed != nil {
			e.Failed = new(v.moment(failed.Time))
		}
		return e
	}
	if c := i.Cause; c != nil {
		x.Cause, x.CausePage = read(c.Message, c.Time, c.FailedTime), reason{insight.CausePage(c.Name), ""}
		if v.documents != "" {
			x.CausePage = reason{string(c.Name), v.documents + insight.CausePage(c.Name)}
		}
	}
	if c := i.Cap; c != nil {
		x.Cap = read(c.Message, c.Time, c.FailedTime)
	}
	if f := i.Flavor; f != nil {
		x.Resized = read(f.To+": "+loadsText(f.Before, f.After), f.Time, f.FailedTime)
		for _, one := range f.Findings {
			x.Findings = append(x.Findings, finding{v.reason(one.Reason), one.Message})
		}
	}
}

// loadsText describes the average load in the hour before a flavor was requested and in the first hour with it.
func loadsText(before, after *v1alpha1.Load) string {
	value := func(l *v1alpha1.Load, of func(*v1alpha1.Load) string) string {
		if l == nil || of(l) == "" {
			return "not known"
		}
		return of(l) + "\u00a0%"
	}
	both := func(of func(*v1alpha1.Load) string) string {
		return value(before, of) + " before, " + value(after, of) + " after"
	}
	return fmt.Sprintf("CPU %s; memory %s", both(func(l *v1alpha1.Load) string { return l.CPUPercent }),
		both(func(l *v1alpha1.Load) string { return l.MemoryPercent }))
}

// loads returns the newest values of CPU and memory: the last average of the plots or, without one, a stored value.
func (v *view) loads(d *database, measured pasts) (all []load) {
	if d.autopilot == nil || d.autopilot.Status.Instance == nil {
		return nil
	}
	for _, m := range autopilot.MetricTable() {
		if m.InGB() {
			continue
		}
		percent, at := newestValue(&d.autopilot.Status, m.Metric)
		if len(measured) > 0 {
			if points := measured[0].Percent[m.Metric]; len(points) > 0 && points[len(points)-1].Time.After(at) {
				percent, at = points[len(points)-1].Value, points[len(points)-1].Time
			}
		}
		l := load{Label: sentenceCase(m.Label), Text: "not measured yet", Measured: v.moment(at)}
		if !at.IsZero() {
			l.Text = fmt.Sprintf("%.1f\u00a0%%", percent)
		}
		if m.Enabled(d.autopilot.Spec) {
			l.Text += fmt.Sprintf(", alarm at %d\u00a0%%", m.ConfiguredThreshold(d.autopilot.Spec))
		} else {
			l.Text += ", no alarm: spec.flavor." + string(m.Metric) + ".enabled is false"
		}
		all = append(all, l)
	}
	return all
}

// sentenceCase returns the text with a capital first letter.
func sentenceCase(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
