// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
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

// fleet is a fleet that was armed long ago, with full records. newFleet creates rules and records itself, and the service
// creates the topic.
type fleet struct {
	*world.World
	size       int
	rdss, raps dynamic.ResourceInterface
	all        []v1alpha1.RdsAutopilot // before the first storm
	cloud      *otc.Cloud
	clusterID  string
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
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	system, err := namespaces.Get(b.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	f.clusterID = string(system.GetUID())
	if f.cloud, err = cloudClient(b.Context(), f.World); err != nil {
		b.Fatal(err)
	}
	progress("creating %d databases", size)
	if err := each(fleetWriters, size, func(i int) error { return f.add(b.Context(), fmt.Sprintf("db-%04d", i)) }); err != nil {
		b.Fatal(err)
	}
	p := f.serve(b) // sees them for the first time
	defer f.stop(b, p)
	f.all = f.waitForAll(b, "armed", world.Armed)
	return f
}

// cloudClient returns the access of a person to the cloud of a world.
func cloudClient(ctx context.Context, w *world.World) (*otc.Cloud, error) {
	env := map[string]string{}
	for _, pair := range w.Cloud.Env() {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	return otc.Connect(ctx, otc.Options{Env: func(k string) string { return env[k] }, Rate: 1e6})
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
func (f *fleet) createInstance(ctx context.Context, name string, autopilot bool) (simcloud.Instance, error) {
	in, err := f.Cloud.AddInstance(simcloud.Instance{Name: name, Flavor: fleetFlavor, VolumeGB: stormSizeGB, Workload: simcloud.Workload{UsedGB: stormQuietGB}})
	if err != nil {
		return in, err
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
	return in, err
}

// add creates a database and everything that the service would create for it. One measurement makes its storage alarm.
func (f *fleet) add(ctx context.Context, name string) error {
	in, err := f.createInstance(ctx, name, false)
	if err != nil {
		return err
	}
	_, err = f.raps.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"storage": map[string]any{"alarm": map[string]any{"count": int64(1)}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created, err := f.arm(ctx, name, in)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": fullStatus(in, created)})
	if err != nil {
		return err
	}
	_, err = f.raps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status")
	return err
}

// arm creates the rules as the service would, without the topic, which the service adds.
func (f *fleet) arm(ctx context.Context, name string, in simcloud.Instance) (created v1alpha1.Alarms, err error) {
	mark := alarms.Mark{Namespace: metav1.NamespaceDefault, Name: name, Cluster: f.clusterID}
	for _, r := range []struct {
		metric                v1alpha1.Metric
		series                string
		period, count, repeat int
	}{
		{v1alpha1.MetricStorage, "rds039_disk_util", 1, 1, 900}, {v1alpha1.MetricCPU, "rds001_cpu_util", 300, 3, 1800},
		{v1alpha1.MetricMemory, "rds002_mem_util", 300, 3, 1800},
	} {
		id, err := f.cloud.CreateRule(ctx, otc.Rule{
			Name: mark.RuleName(r.metric), Description: mark.String(), Namespace: otc.MetricNamespace, Metric: r.series,
			Dimension: "rds_cluster_id", DimensionValue: in.ID, Period: r.period, Count: r.count, Repeat: r.repeat,
			Filter: "average", Comparison: ">=", Threshold: 90, Unit: "%", Level: 2,
			Enabled: true,
		})
		if err != nil {
			return created, err
		}
		created.Rules = append(created.Rules, v1alpha1.Rule{Metric: r.metric, AlarmID: id, ThresholdPercent: 90, Dimension: "rds_cluster_id:" + in.ID})
	}
	return created, nil
}

// fullStatus returns the status of a database with a long past: every list has its maximum length.
func fullStatus(in simcloud.Instance, created v1alpha1.Alarms) v1alpha1.Status {
	past := time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Second)
	day := func(n int) metav1.Time { return metav1.NewTime(past.Add(time.Duration(n) * 24 * time.Hour)) }
	micro := func(n int) *metav1.MicroTime { m := metav1.NewMicroTime(day(n).Time); return &m }
	s := v1alpha1.Status{
		ObservedGeneration: 1, Alarms: created,
		Baseline: &v1alpha1.Baseline{VolumeGB: 40, VCPUs: int32(in.VCPUs), MemoryGB: int32(in.MemoryGB)},
		Instance: &v1alpha1.Instance{
			ID: in.ID, Status: in.Status, ActiveSince: new(day(0)), VolumeGB: int32(in.VolumeGB), Flavor: in.Flavor, VCPUs: int32(in.VCPUs), MemoryGB: int32(in.MemoryGB),
			Zones: []string{in.Nodes[0].Zone}, NodeIDs: []string{in.Nodes[0].ID},
		},
	}
	for n := range 10 {
		s.Changes = append(s.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4", Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU},
			ValuePercent: "97.3", EvidenceTime: micro(10 - n), DecisionTime: micro(10 - n), CompletionTime: *micro(10 - n), Outcome: v1alpha1.OutcomeCompleted, Generation: 1,
		})
	}
	for n := range 2 {
		s.Changes = append(s.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: strconv.Itoa(90 - 10*n), To: strconv.Itoa(100 - 10*n), Metrics: []v1alpha1.Metric{v1alpha1.MetricStorage},
			ValuePercent: "93.1", EvidenceTime: micro(9 - n), DecisionTime: micro(9 - n), CompletionTime: *micro(9 - n), Outcome: v1alpha1.OutcomeCompleted, Generation: 1,
		})
	}
	for n := range 20 {
		s.Decisions = append(s.Decisions, v1alpha1.DecisionRecord{
			Time: day(20 - n), LastTime: day(20 - n), Count: 12, Metric: v1alpha1.MetricMemory, Action: "None", Reason: []string{"Cooldown", "BudgetSpent"}[n%2],
			From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4", ValuePercent: "97.3", MessageID: fmt.Sprintf("%032d", n),
			Message: "The flavor changed at 2026-11-20T11:37:00Z, and the cooldown is 1 hour. Next check at 2026-11-20T12:37:00Z",
		})
	}
	return s
}
