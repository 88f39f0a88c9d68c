// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// A process that watches some namespaces only knows nothing of the others: what belongs to no autopilot that it sees may be
// theirs.
func TestOrphansAreRemovedOnlyWhereEveryNamespaceIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 1000, simcloud.Options{})
		of := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "0f1e2d3c-0000"}}
		arms := controller.DesiredAlarms{Autopilot: of, Instance: autopilot.Instance{ID: r.add(t, 1)[0], Engine: "MySQL"}, Rules: autopilot.Rules(autopilot.DefaultSpec(), 100)}
		some, every := NewArming(r.Cloud, "cluster-1", "https://a.example/smn", false), NewArming(r.Cloud, "cluster-1", "https://a.example/smn", true)
		if _, _, err := every.Ensure(t.Context(), arms, v1alpha1.Alarms{}, func(v1alpha1.Alarms) error { return nil }); err != nil {
			t.Fatal(err)
		}
		none := func(context.Context) ([]*v1alpha1.RdsAutopilot, error) { return nil, nil }
		time.Sleep(time.Minute)
		if removed, _, err := some.Orphans(t.Context(), time.Now(), nil, none); err != nil || len(removed) > 0 || len(r.sim.Topics()) != 1 {
			t.Errorf("with some namespaces watched it removed %v, %v", removed, err)
		}
		if removed, _, err := every.Orphans(t.Context(), time.Now(), nil, none); err != nil || len(removed) != 1 || len(r.sim.Topics()) != 0 || len(r.sim.Rules()) != 0 {
			t.Errorf("with every namespace watched it removed %v, %v", removed, err)
		}
	})
}
