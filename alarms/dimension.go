// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	lookAgainAfter = 30 * time.Minute // for an instance without data of its own
	seriesFor      = time.Minute      // how old a list of all series may be that counts as new
	seriesKept     = 24 * time.Hour   // how long a list counts for the instances that are in it
)

// seriesList is what Cloud Eye listed last, and how the last try ended.
type seriesList struct {
	at     time.Time
	listed map[otc.Series]bool

	tried time.Time
	err   error
}

// lookup is when an instance without data of its own was looked for, with that primary node.
type lookup struct {
	at      time.Time
	primary string
}

// Dimension is what the rules of an instance should watch: the instance, unless Cloud Eye has data only of its primary
// node. Ask it 30 minutes after ACTIVE at the earliest, and as often as is convenient: one list serves all instances, and
// what it says of an instance is remembered.
func (a *Alarms) Dimension(ctx context.Context, engine, instanceID, primaryNodeID string) (name, value string, err error) {
	ofInstance, err1 := InstanceDimension(engine)
	ofNode, err2 := NodeDimension(engine)
	if err := errors.Join(err1, err2); err != nil {
		return "", "", err
	}
	if len(a.metrics) == 0 {
		return "", "", errors.New("there are no metrics to find the dimension by")
	}
	metric := a.metrics[0].CloudEye
	select {
	case a.seriesTurn <- struct{}{}:
		defer func() { <-a.seriesTurn }()
	case <-ctx.Done():
		return "", "", ctx.Err()
	}
	own := otc.Series{Metric: metric, Dimension: ofInstance, Value: instanceID}
	known := a.series.listed[own] && a.now().Sub(a.series.at) < seriesKept
	if last := a.lookups[instanceID]; !known && (a.now().Sub(last.at) >= lookAgainAfter || last.primary != primaryNodeID) {
		if err := a.listSeries(ctx, metric); err != nil {
			return "", "", fmt.Errorf("list the series of %s: %w", metric, err)
		}
		a.lookups[instanceID] = lookup{a.now(), primaryNodeID}
	}
	switch {
	case a.series.listed[own]:
		delete(a.lookups, instanceID)
	case primaryNodeID != "" && a.series.listed[otc.Series{Metric: metric, Dimension: ofNode, Value: primaryNodeID}]:
		return ofNode, primaryNodeID, nil
	}
	return ofInstance, instanceID, nil
}

// listSeries lists all series of a metric, unless that was done a moment ago. The turn (seriesTurn) is held.
func (a *Alarms) listSeries(ctx context.Context, metric string) error {
	begin := a.now()
	if begin.Sub(a.series.tried) < seriesFor {
		return a.series.err
	}
	listed, err := a.cloud.ListedSeries(ctx, metric)
	if ctx.Err() != nil {
		return ctx.Err() // which is no answer of the cloud
	}
	a.series.tried, a.series.err = begin, err
	if err == nil {
		a.series.at, a.series.listed = begin, listed
	}
	return err
}

// InstanceDimension is the dimension whose value is an instance's id (RDS umn: configuring_displayed_metrics.rst).
func InstanceDimension(engine string) (string, error) {
	switch strings.ToLower(engine) {
	case "mysql":
		return "rds_cluster_id", nil
	case "postgresql":
		return "postgresql_cluster_id", nil
	case "sqlserver":
		return "rds_cluster_sqlserver_id", nil
	}
	return "", fmt.Errorf("no such engine: %s", engine)
}

// NodeDimension is the dimension whose value is a node's id (RDS api: rds_monitoring_metrics_description.rst).
func NodeDimension(engine string) (string, error) {
	switch strings.ToLower(engine) {
	case "mysql":
		return "rds_instance_id", nil
	case "postgresql":
		return "postgresql_instance_id", nil
	case "sqlserver":
		return "rds_instance_sqlserver_id", nil
	}
	return "", fmt.Errorf("no such engine: %s", engine)
}
