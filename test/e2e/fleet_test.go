// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	largeFleetFlavor   = "rds.mysql.n1.large.4"
	largeFleetMemLimit = "256000000" // bytes; GOMEMLIMIT
	largeFleetSpeed    = 12          // more than that two cores cannot do for all of this world
)

// largeFleet is a fleet that was armed long ago, with full records, made straight in the cloud and the API server: at 150
// subscriptions in ten minutes the service would take hours.
type largeFleet struct {
	*world.World
	t         testing.TB
	client    dynamic.Interface
	cloud     *otc.Cloud
	clusterID string
}

// each calls do for so many, some at a time.
func each(atATime, size int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range size {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// autopilots are all that there are.
func (c *largeFleet) autopilots(ctx context.Context) ([]v1alpha1.RdsAutopilot, error) {
	return listAutopilots(ctx, c.client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)))
}

// listAutopilots asks the API server for what it has in its cache.
func listAutopilots(ctx context.Context, raps dynamic.ResourceInterface) ([]v1alpha1.RdsAutopilot, error) {
	list, err := raps.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list RdsAutopilots: %w", err)
	}
	all := make([]v1alpha1.RdsAutopilot, len(list.Items))
	for i, u := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func newLargeFleet(t testing.TB, size int) *largeFleet {
	t.Helper()
	ctx := world.Within(t)
	w := shared.StartAlone(t, world.Options{
		Resync: time.Hour,
		Cloud: simcloud.Options{
			Speed: largeFleetSpeed, Settings: simcloud.Settings{TopicQuota: 2 * size, SubscriptionQuota: 2 * size, RuleQuota: 4 * size, ConfirmationQuota: 1},
			// This is about the loop, and two cores cannot carry a storm of messages beside it.
			DeliveryFault: func(simcloud.Delivery) simcloud.DeliveryFault { return simcloud.DeliveryFault{Drop: true} },
		},
	})
	w.Operator.Pause()
	c := &largeFleet{World: w, t: t}
	var err error
	if c.client, err = dynamic.NewForConfig(w.Kube.Config()); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(w.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.clusterID = string(system.UID)
	env := map[string]string{}
	for _, pair := range w.Cloud.Env() {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	if c.cloud, err = otc.Connect(t.Context(), otc.Options{Env: func(k string) string { return env[k] }, Rate: 1e6}); err != nil {
		t.Fatal(err)
	}
	return c
}

// add makes a database, and all that exists for it. One reading makes its storage alarm.
func (c *largeFleet) add(name string, load simcloud.Workload) error {
	ctx := c.t.Context()
	in, err := c.Cloud.AddInstance(simcloud.Instance{Name: name, Flavor: largeFleetFlavor, VolumeGB: 100, Workload: load})
	if err != nil {
		return err
	}
	_, err = c.client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(metav1.NamespaceDefault).Create(ctx, rdsOf(in, false), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	raps := c.client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(metav1.NamespaceDefault)
	rap, err := raps.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": name, "finalizers": []any{v1alpha1.Finalizer}},
		"spec":     map[string]any{"storage": map[string]any{"alarm": map[string]any{"count": int64(1)}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	have, err := c.arm(ctx, name, string(rap.GetUID()), in)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": fullStatus(in, have)})
	if err != nil {
		return err
	}
	_, err = raps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status")
	return err
}

// rdsOf is the Rds of an instance, as its operator leaves it.
func rdsOf(in simcloud.Instance, autopilot bool) *unstructured.Unstructured {
	spec := map[string]any{
		"datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor, "volumetype": in.VolumeType, "volumesize": int64(in.VolumeGB),
	}
	if autopilot {
		spec["autopilot"] = true
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind, "metadata": map[string]any{"name": in.Name},
		"spec": spec, "status": map[string]any{"id": in.ID, "status": in.Status},
	}}
}

// arm makes topic, subscription and rules as the service would.
func (c *largeFleet) arm(ctx context.Context, name, uid string, in simcloud.Instance) (have v1alpha1.Alarms, err error) {
	base, mark := v1alpha1.CloudName(metav1.NamespaceDefault, name, uid), alarms.Mark(metav1.NamespaceDefault, name, c.clusterID)
	if have.TopicURN, err = c.cloud.CreateTopic(ctx, base, mark); err != nil {
		return have, err
	}
	if have.SubscriptionURN, err = c.cloud.Subscribe(ctx, have.TopicURN, "http", c.PublicURL(), "rds-autopilot"); err != nil {
		return have, err
	}
	c.Cloud.Confirm(have.SubscriptionURN)
	have.Subscription = v1alpha1.SubscriptionConfirmed
	for _, r := range []struct {
		metric                v1alpha1.Metric
		series                string
		period, count, repeat int
	}{
		{v1alpha1.MetricStorage, "rds039_disk_util", 1, 1, 900}, {v1alpha1.MetricCPU, "rds001_cpu_util", 300, 3, 1800},
		{v1alpha1.MetricMemory, "rds002_mem_util", 300, 3, 1800},
	} {
		id, err := c.cloud.CreateRule(ctx, otc.Rule{
			Name: alarms.RuleName(base, r.metric), Description: mark, Namespace: otc.MetricNamespace, Metric: r.series,
			Dimension: "rds_cluster_id", DimensionValue: in.ID, Period: r.period, Count: r.count, Repeat: r.repeat,
			Filter: "average", Comparison: ">=", Threshold: 90, Unit: "%", Level: 2,
			Enabled: true, ActionEnabled: true, AlarmActions: []string{have.TopicURN}, OKActions: []string{have.TopicURN},
		})
		if err != nil {
			return have, err
		}
		have.Rules = append(have.Rules, v1alpha1.Rule{Metric: r.metric, AlarmID: id, ThresholdPercent: 90, Dimension: "rds_cluster_id:" + in.ID})
	}
	return have, nil
}

// fullStatus is that of a database with a long past: every list as long as it may be.
func fullStatus(in simcloud.Instance, have v1alpha1.Alarms) v1alpha1.Status {
	past := time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Second)
	day := func(n int) metav1.Time { return metav1.NewTime(past.Add(time.Duration(n) * 24 * time.Hour)) }
	micro := func(n int) *metav1.MicroTime { m := metav1.NewMicroTime(day(n).Time); return &m }
	s := v1alpha1.Status{
		ObservedGeneration: 1, Alarms: have,
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
	for n := range 8 {
		s.FormerVolumes = append(s.FormerVolumes, v1alpha1.FormerVolume{VolumeGB: 90, Until: day(20 - n)})
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
