// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const usedSpace = "rds048_disk_used_size"

// breakUsedSpace makes Cloud Eye return a fault in place of the used space of an instance.
func (r reads) breakUsedSpace(t *testing.T, id string, fault simcloud.SeriesFault) {
	t.Helper()
	fault.All = true
	err := r.sim.ChangeInstance(id, func(in *simcloud.Instance) {
		in.SeriesFaults = map[string]simcloud.SeriesFault{usedSpace: fault}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMalformedSeriesAffectsOnlyItself(t *testing.T) {
	for name, fault := range map[string]simcloud.SeriesFault{
		"a text": {Value: `"a lot"`}, "NaN": {Value: "NaN"}, "a number that is too large": {Value: "1e999"},
		"an object": {Value: "{}"}, "refused": {Refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReads(t, 20, simcloud.Options{})
				ids := r.add(t, 5)
				time.Sleep(10 * time.Minute)
				malformed := ids[2]
				r.breakUsedSpace(t, malformed, fault)
				var all sync.WaitGroup
				for _, id := range ids {
					all.Go(func() {
						inst := autopilot.Instance{ID: id, Engine: "MySQL", VolumeGB: 100}
						e, err := r.Evidence(t.Context(), inst, autopilot.EvidenceRequest{Metric: v1alpha1.MetricStorage})
						if (err != nil) != (id == malformed) || (e.UsedGB == 50) == (id == malformed) {
							t.Errorf("database %s: %+v, %v", id, e, err)
						}
					})
				}
				all.Wait()
			})
		})
	}
}
