// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// measurements are the newest values of the database in Cloud Eye.
type measurements struct {
	dimension, value     string // the dimension with data, else the instance's own
	ofInstance, ofNode   bool   // whether Cloud Eye lists data of the instance, and of a node
	util, used, total    otc.Datapoint
	cpu                  otc.Datapoint // of the instance
	primary, standby     otc.Datapoint // CPU of the nodes of an HA instance
	read                 time.Time     // when the values were read
	resizeKnown, resized bool          // whether the cloud answered, and with a resize list
}

func storage() autopilot.MetricRow { return row(v1alpha1.MetricStorage) }

func row(m v1alpha1.Metric) autopilot.MetricRow {
	found, _ := autopilot.LookupMetric(m) // every metric is in the table
	return found
}

// measure reads the values of three hours, because they may arrive later than the manual says.
func (x *examination) measure(ctx context.Context) error {
	in, m := x.instance, &x.data
	ofInstance, err1 := alarms.InstanceDimension(in.Engine)
	ofNode, err2 := alarms.NodeDimension(in.Engine)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	listed, err := x.api.ListedSeries(ctx, storage().CloudEye)
	if err != nil {
		return err
	}
	cpu := row(v1alpha1.MetricCPU).CloudEye
	wanted := map[*otc.Datapoint]otc.Series{&m.cpu: {Metric: cpu, Dimension: ofInstance, Value: in.ID}}
	m.ofInstance = listed[otc.Series{Metric: storage().CloudEye, Dimension: ofInstance, Value: in.ID}]
	m.dimension, m.value = ofInstance, in.ID
	for _, n := range in.Nodes {
		if !listed[otc.Series{Metric: storage().CloudEye, Dimension: ofNode, Value: n.ID}] {
			continue
		}
		m.ofNode = true
		if !m.ofInstance && (n.Role == "master" || m.value == in.ID) {
			m.dimension, m.value = ofNode, n.ID
		}
		switch n.Role {
		case "master":
			wanted[&m.primary] = otc.Series{Metric: cpu, Dimension: ofNode, Value: n.ID}
		case "slave":
			wanted[&m.standby] = otc.Series{Metric: cpu, Dimension: ofNode, Value: n.ID}
		}
	}
	for into, metric := range map[*otc.Datapoint]string{&m.util: storage().CloudEye, &m.used: storage().UsedGB,
		&m.total: storage().TotalGB} {
		wanted[into] = otc.Series{Metric: metric, Dimension: m.dimension, Value: m.value}
	}
	series := make([]otc.Series, 0, len(wanted))
	for _, s := range wanted {
		series = append(series, s)
	}
	m.read = x.Now()
	points, err := x.api.Datapoints(ctx, series, 1, m.read.Add(-3*time.Hour), m.read.Add(3*time.Hour))
	if err != nil {
		return err
	}
	for into, s := range wanted {
		if p := points[s]; len(p) > 0 {
			*into = p[len(p)-1]
		}
	}
	_, err = x.api.ResizeTargets(ctx, in.ID)
	m.resized = err == nil
	refusals := []int{http.StatusNotFound, http.StatusBadRequest} // 403 is a missing right, which the error names
	answer, ok := errors.AsType[*otc.Error](err)
	m.resizeKnown = m.resized || ok && slices.Contains(refusals, answer.Status)
	if m.resizeKnown {
		return nil
	}
	return err
}

// percent returns the used space in percent of the size, and false if either is unknown.
func (m measurements) percent() (float64, bool) {
	if m.used.Time.IsZero() || m.total.Average <= 0 {
		return 0, false
	}
	return 100 * m.used.Average / m.total.Average, true
}
