// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table shows every database before and after, under the same load.
func (s *scenario) table(ctx context.Context) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DATABASE\tVOLUME\tFLAVOR\tUSED\tCHANGES")
	for i, db := range s.dbs {
		p, was, is := s.plans[i], s.before[i], db.Instance()
		changes := "?"
		if a, err := db.Autopilot(ctx); err == nil {
			changes = strconv.Itoa(len(a.Status.Changes))
		}
		fmt.Fprintf(w, "%s\t%s GB\t%s\t%s %.0f → %.0f %%\t%s\n", p.Name, step(strconv.Itoa(was.VolumeGB), strconv.Itoa(is.VolumeGB)), step(was.Flavor, is.Flavor),
			p.metric, used(p.metric, p.load, was), used(p.metric, p.load, is), changes)
	}
	_ = w.Flush() // of a builder
	return text.String()
}

func step(from, to string) string {
	if from == to {
		return to
	}
	return from + " → " + to
}
