// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	fromDatabase = "../../"    // the way from the page of a database to the overview
	fromPlan     = "../../../" // the same from a plan

	notWatched = "This service watches no database of that name."
)

type condition struct {
	Type, Status, Reason, Message string
	Since                         moment
}

type rule struct {
	Metric, AlarmID, Dimension, State string
	Threshold                         int
	Since                             moment
}

type detail struct {
	row
	Conditions  []condition
	Policy      []field
	PolicyError string
	InForce     []string
	Timeline    []entry

	HasAutopilot, HasRds bool
	InstanceID           string
	Wanted               string // by the Rds
	Instance             *v1alpha1.Instance
	Zones, Nodes         string
	Cloud                v1alpha1.Alarms
	Rules                []rule
	Measured             moment
	OffersPlan           bool
	PlanPath             string // relative
}

func (p *pages) showDatabase(r *http.Request, v *view) answer {
	// The path may be escaped: chi hands it out as it came.
	namespace, err := url.PathUnescape(chi.URLParam(r, "namespace"))
	name, err2 := url.PathUnescape(chi.URLParam(r, "name"))
	d := database{Namespace: namespace, Name: name}
	if a, ok := p.Cache.Autopilot(namespace, name); ok {
		d.autopilot = a
	}
	d.target = p.Cache.Target(namespace, name)
	if err != nil || err2 != nil || d.autopilot == nil && d.target == nil {
		return answer{http.StatusNotFound, p.failure, fromDatabase, "Not found", notWatched}
	}
	v.summarize(&d)
	x := v.detail(&d)
	x.OffersPlan, x.PlanPath = p.Plan != nil && x.HasRds, "./"+url.PathEscape(name)+"/plan"
	return answer{http.StatusOK, p.database, fromDatabase, d.Namespace + "/" + d.Name, x}
}

func (v *view) detail(d *database) *detail {
	x := &detail{row: v.row(d), HasAutopilot: d.autopilot != nil, HasRds: d.target != nil, Measured: v.moment(d.Storage.Measured)}
	x.Sentence = d.Why // the whole one
	if t := d.target; t != nil {
		x.InstanceID = t.InstanceID
		x.Wanted = fmt.Sprintf("%d GB, flavor %s", t.Wanted.VolumeGB, t.Wanted.Flavor)
	}
	if d.autopilot == nil {
		return x
	}
	s := &d.autopilot.Status
	for _, c := range s.Conditions {
		x.Conditions = append(x.Conditions, condition{c.Type, string(c.Status), c.Reason, c.Message, v.moment(c.LastTransitionTime.Time)})
	}
	var err error
	if x.Policy, err = policyOf(d.autopilot.Spec); err != nil {
		x.PolicyError = err.Error()
	}
	x.InForce, x.Timeline = v.inForce(d), v.timeline(s)
	x.Cloud = s.Alarms
	if x.Instance = s.Instance; x.Instance != nil {
		x.Zones, x.Nodes = strings.Join(x.Instance.Zones, ", "), strings.Join(x.Instance.NodeIDs, ", ")
	}
	for _, r := range s.Alarms.Rules {
		one := rule{Metric: string(r.Metric), AlarmID: r.AlarmID, Dimension: r.Dimension, State: string(r.State), Threshold: int(r.ThresholdPercent)}
		if r.StateTime != nil {
			one.Since = v.moment(r.StateTime.Time)
		}
		x.Rules = append(x.Rules, one)
	}
	return x
}
