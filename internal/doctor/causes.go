// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// askDatabase returns the next step if Cloud Eye lacks a metric. The service grows the volume in any case.
func askDatabase() string {
	return "If the database is younger than an hour, run doctor again later. When a disk is full, use the SQL of " +
		insight.CausePage(v1alpha1.CauseUnknown)
}

// checkCauses reports for each engine which metrics of insight.CauseMetrics Cloud Eye lists for the instances of the
// project. It asks for all instances, because the named database has one engine only. Read replicas do not count,
// because the service does not change them.
func (x *examination) checkCauses(ctx context.Context) []Result {
	all, err := x.api.Instances(ctx)
	if failed := refused(err); failed != nil {
		return failed
	}
	all = slices.DeleteFunc(all, func(in otc.Instance) bool { return in.ReplicaOf != "" })
	listed := map[string]map[otc.Series]bool{} // by metric; two engines share the used space
	var results []Result
	for _, engine := range []string{"PostgreSQL", "SQLServer", "MySQL"} {
		metrics := insight.CauseMetrics(engine)
		own := slices.DeleteFunc(slices.Clone(all), func(in otc.Instance) bool { return in.Engine != engine })
		switch {
		case len(metrics) == 0:
			results = append(results, ok("%s: Cloud Eye has no metrics of sizes, so the cause is always Unknown", engine)...)
			continue
		case len(own) == 0:
			results = append(results, result(Unseen, "", "%s: the project has no instance of this engine", engine)...)
			continue
		}
		var missing []Result
		for _, metric := range metrics {
			if listed[metric] == nil {
				if listed[metric], err = x.api.ListedSeries(ctx, metric); err != nil {
					return append(results, refused(err)...)
				}
			}
			missing = append(missing, notSeen(engine, metric, own, listed[metric])...)
		}
		if missing == nil {
			results = append(results, ok("%s: seen: all %d metrics, of %s", engine, len(metrics), instances(len(own)))...)
		}
		results = append(results, missing...)
	}
	return results
}

// notSeen returns a warning if Cloud Eye does not list a metric for each of these instances.
func notSeen(engine, metric string, of []otc.Instance, listed map[otc.Series]bool) []Result {
	has := map[string]bool{} // by id of an instance or a node
	for s := range listed {
		has[s.Value] = true
	}
	without := slices.DeleteFunc(slices.Clone(of), func(in otc.Instance) bool {
		return has[in.ID] || slices.ContainsFunc(in.Nodes, func(n otc.Node) bool { return has[n.ID] })
	})
	if len(without) == 0 {
		return nil
	}
	return result(Warning, askDatabase(), "%s: not seen: %s: %s (%d of %s, such as %s)",
		engine, metric, insight.CauseLostWithout(metric), len(without), instances(len(of)), without[0].ID)
}

func instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}
