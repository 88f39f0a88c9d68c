// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// What follows are rows that need a world of their own: what they are about is the same for all databases in it.

// limitRows are about --max-flavor-changes, which the first row uses up.
func limitRows() []row {
	return []row{
		{name: "a flavor that is changing", stage: all(pendingFlavor(time.Minute), jobSince(time.Minute), instanceIn("MODIFYING")), waits: true},
		{name: "too many in the cluster", stage: cpu(95), metric: onCPU, reason: "FleetBrake", says: "--max-flavor-changes"},
		{name: "the brake does not hold storage back", stage: all(cooldown(1), cpu(95), disk(93)), metric: onStorage, reason: acts, to: grows("110")},
	}
}

// Two flavors are changing and no more may, whether they have an Rds or not: two databases wait for their flavor, and one of them
// for its storage not at all. Once the two have theirs, the others get theirs.
func TestNoMoreFlavorsChangeInTheCloudThanMay(t *testing.T) {
	level.Short(t)
	t.Parallel()
	d := newDecisions(t, 20, shared.Start)
	d.add(limitRows(), bothWays)
	d.decide("--max-flavor-changes", "2")
	d.check()
	d.each(func(x *decided) error {
		if !x.waits {
			x.to = append(x.to, nextCPU)
			return nil
		}
		x.waits = false
		err := d.Cloud.ChangeInstance(x.ID, func(in *otcsim.Instance) { in.Flavor, in.Status = nextCPU, otcsim.StatusActive })
		x.first = x.Instance()
		return err
	})
	d.until("all have their flavor", (*decided).lacks)
	d.check()
}

// silentRows are about a Cloud Eye that has no data.
func silentRows() []row {
	noData := func(s *scene) {
		s.rule = otcsim.StateInsufficientData
		s.more = func(d *decisions, _ *world.DB) error {
			d.Cloud.Configure(func(o *otcsim.Settings) { o.NoInstanceLevelData = true })
			return nil
		}
	}
	return []row{
		// ACTIVE just now, or the node's data were looked for.
		{name: "a message said alarm, Cloud Eye has no data any more", stage: all(activeFor(0), noData, told(onStorage, 93, 3*time.Minute, 3*time.Minute)), metric: onStorage, reason: "AlarmCleared", says: "Cloud Eye says insufficient_data"},
	}
}

// Cloud Eye says so after three hours without data, which take 18 seconds here.
func TestAnAlarmOfWhichCloudEyeHasNoDataAnyMore(t *testing.T) {
	level.Long(t)
	t.Parallel()
	d := newDecisions(t, 600, shared.Start)
	d.add(silentRows(), bothWays)
	d.decide()
	d.check()
}

// oldSchemaRows are about a policy that today's schema does not take.
func oldSchemaRows() []row {
	written := func(spec string) func(*scene) {
		return func(s *scene) {
			s.more = func(d *decisions, db *world.DB) error {
				return world.Eventually(d.ctx, "the older schema is in force", func(ctx context.Context) (bool, error) {
					err := db.PatchAutopilot(ctx, spec)
					return err == nil, err
				})
			}
		}
	}
	step := written(`{"spec":{"storage":{"stepGB":15}}}`)
	zone := written(`{"spec":{"flavor":{"window":{"start":"00:00","end":"00:00","timeZone":"Nowhere/Here"}}}}`)
	return []row{
		{name: "a policy the schema could not catch", stage: all(step, disk(93)), metric: onStorage, reason: "PolicyInvalid", says: "spec.storage.stepGB"},
		{name: "what is wrong for flavors holds back no storage", stage: all(zone, cpu(95), disk(93)), metric: onStorage, reason: acts, to: grows("110")},
	}
}

// The cluster has a CRD of a version that checked neither the step nor the time zone.
func TestAPolicyThatAnOlderSchemaTook(t *testing.T) {
	level.Long(t)
	t.Parallel()
	d := newDecisions(t, 20, shared.StartAlone)
	client, err := dynamic.NewForConfig(d.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const older = `[
		{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/storage/properties/stepGB/multipleOf"},
		{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"}]`
	if _, err := crds.Patch(d.ctx, v1alpha1.Resource+"."+v1alpha1.Group, types.JSONPatchType, []byte(older), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	d.add(oldSchemaRows(), bothWays)
	d.decide()
	d.check()
}
