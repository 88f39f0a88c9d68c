// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
)

// table shows every database before and after, under the same load.
func (s *scenario) table(ctx context.Context) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "DATABASE\t\tVOLUME\tFLAVOR\tVCPUS\tMEMORY\tUSED\tCHANGES")
	for i, db := range s.dbs {
		p, was, is := s.plans[i], s.before[i], db.Instance()
		changes := "?"
		if a, err := db.Autopilot(ctx); err == nil {
			changes = fmt.Sprint(len(a.Status.Changes))
		}
		fmt.Fprintf(w, "%s\tbefore\t%d GB\t%s\t%d\t%d GB\t%.0f %% %s\t\n", p.Name, was.VolumeGB, was.Flavor, was.VCPUs, was.MemoryGB, used(p.metric, p.load, was), p.metric)
		fmt.Fprintf(w, "\tafter\t%d GB\t%s\t%d\t%d GB\t%.0f %% %s\t%s\n", is.VolumeGB, is.Flavor, is.VCPUs, is.MemoryGB, used(p.metric, p.load, is), p.metric, changes)
	}
	_ = w.Flush() // of a builder
	return text.String()
}
