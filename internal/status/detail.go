// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/mcsps/rds-autopilot/autopilot"
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

type detail struct {
	row
	Conditions []condition
	Timeline   []entry
	ReadOnly   *moment // since when the database is read-only
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
