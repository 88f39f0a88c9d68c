// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	fleetFlavor  = "rds.mysql.n1.large.4"
	fleetSpeed   = 12  // of the cloud: two cores cannot do more for the whole world
	fleetBurst   = 140 // databases that are armed at once, in addition to the fleet
	fleetWriters = 16  // goroutines that send messages, and create and reset databases
)

// fleet is a fleet that the service has armed.
type fleet struct {
	*world.World
	size       int
	rdss, raps dynamic.ResourceInterface
	all        []v1alpha1.RdsAutopilot // before the first storm
}

func newFleet(b *testing.B, size int) *fleet {
	b.Helper()
	f := &fleet{size: size, World: shared.StartAlone(b, world.Options{
		Resync: time.Hour,
		Cloud: simcloud.Options{
			Speed: fleetSpeed, Settings: simcloud.Settings{RuleQuota: 4 * (size + fleetBurst)},
			// The benchmark measures the loop, and two cores cannot carry a storm of messages too.
			DeliveryFault: func(d simcloud.Delivery) simcloud.DeliveryFault {
				return simcloud.DeliveryFault{Drop: d.Type == simcloud.TypeNotification}
			},
		},
	})}
	f.Operator.Pause()
	client, err := dynamic.NewForConfig(f.Kube.Config())
	if err != nil {
		b.Fatal(err)
	}
	f.rdss = client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(metav1.NamespaceDefault)
	f.raps = client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(metav1.NamespaceDefault)
	progress("creating %d databases", size)
	if err := each(fleetWriters, size, func(i int) error { return f.add(b.Context(), fmt.Sprintf("db-%04d", i)) }); err != nil {
		b.Fatal(err)
	}
	p := f.serve(b) // sees them for the first time
	defer f.stop(b, p)
	f.all = f.waitForAll(b, "armed", world.Armed)
	return f
}

// progress prints a line at once. What a benchmark logs is printed at its end.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+" ── "+format+"\n", args...)
}

// each calls do with 0 to size-1, several at a time.
func each(atATime, size int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range size {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// waitForAll waits until a condition holds for all RdsAutopilots, and returns them. It asks rarely, because a list of a large
// fleet costs the API server much.
func (f *fleet) waitForAll(b *testing.B, what string, holds func(*v1alpha1.RdsAutopilot) bool) []v1alpha1.RdsAutopilot {
	b.Helper()
	for {
		list, err := f.raps.List(b.Context(), metav1.ListOptions{ResourceVersion: "0"}) // from the API server's cache
		if err != nil {
			b.Fatal(err)
		}
		all := make([]v1alpha1.RdsAutopilot, len(list.Items))
		missing := 0
		for i, u := range list.Items {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &all[i]); err != nil {
				b.Fatal(err)
			}
			if !holds(&all[i]) {
				missing++
			}
		}
		if missing == 0 {
			return all
		}
		progress("%d are not yet %s", missing, what)
		time.Sleep(2 * time.Second)
	}
}

// createInstance creates an instance and its Rds.
func (f *fleet) createInstance(ctx context.Context, name string, autopilot bool) error {
	in, err := f.Cloud.AddInstance(simcloud.Instance{Name: name, Flavor: fleetFlavor, VolumeGB: stormSizeGB, Workload: simcloud.Workload{UsedGB: stormQuietGB}})
	if err != nil {
		return err
	}
	spec := map[string]any{
		"datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor, "volumetype": in.VolumeType, "volumesize": int64(in.VolumeGB),
	}
	if autopilot {
		spec["autopilot"] = true
	}
	_, err = f.rdss.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind, "metadata": map[string]any{"name": in.Name},
		"spec": spec, "status": map[string]any{"id": in.ID, "status": in.Status},
	}}, metav1.CreateOptions{})
	return err
}

// add creates a database whose storage alarm needs one measurement.
func (f *fleet) add(ctx context.Context, name string) error {
	if err := f.createInstance(ctx, name, false); err != nil {
		return err
	}
	_, err := f.raps.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"storage": map[string]any{"alarm": map[string]any{"count": int64(1)}}},
	}}, metav1.CreateOptions{})
	return err
}
