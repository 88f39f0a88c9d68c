// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	day      = 24 * time.Hour
	twoVCPUs = "rds.mysql.n1.large.4" // 2 vCPUs, 8 GB
)

// instance returns an instance of the cloud with this used space and an idle CPU.
func instance(flavor string, volumeGB int, usedGB float64) simcloud.Instance {
	return simcloud.Instance{Flavor: flavor, VolumeGB: volumeGB, Workload: simcloud.Workload{UsedGB: usedGB}}
}

// smallInstance returns an instance that needs no change.
func smallInstance() simcloud.Instance { return instance(twoVCPUs, 100, 10) }

// addInstance adds an instance to the cloud, without an Rds.
func (f *fleet) addInstance(in simcloud.Instance) simcloud.Instance {
	f.t.Helper()
	in, err := f.sim.AddInstance(in)
	f.must(err)
	return in
}

// database adds an instance and its Rds, with status.id as the operator would set it.
func (f *fleet) database(namespace, name string, in simcloud.Instance) simcloud.Instance {
	f.t.Helper()
	in.Name = name
	in = f.addInstance(in)
	f.createRds(namespace, name, rdsSpec(in, true), in.ID)
	return in
}

// rdsSpec returns the spec of the Rds of an instance. spec.autopilot is absent if on is nil.
func rdsSpec(in simcloud.Instance, on any) map[string]any {
	spec := map[string]any{
		"datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor, "volumesize": int64(in.VolumeGB),
		"volumetype": in.VolumeType,
	}
	if on != nil {
		spec["autopilot"] = on
	}
	return spec
}

// uses sets the used space of a database.
func (f *fleet) uses(id string, gb float64) {
	f.t.Helper()
	f.must(f.sim.SetWorkload(id, simcloud.Workload{UsedGB: gb}))
}

// createRds creates an Rds. An empty id means that the operator has not set status.id yet.
func (f *fleet) createRds(namespace, name string, spec map[string]any, id string) {
	f.t.Helper()
	_, err := f.rdss(namespace).Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind, "metadata": map[string]any{"name": name},
		"spec": spec, "status": map[string]any{"id": id},
	}}, metav1.CreateOptions{})
	f.must(err)
}

// createAutopilot creates an RdsAutopilot as a person does.
func (f *fleet) createAutopilot(namespace, name, spec string) {
	f.t.Helper()
	var value map[string]any
	f.must(json.Unmarshal([]byte(spec), &value))
	_, err := f.raps(namespace).Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": name}, "spec": value,
	}}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	f.must(err)
}

func (f *fleet) rdss(namespace string) dynamic.ResourceInterface {
	return f.admin.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(namespace)
}

func (f *fleet) raps(namespace string) dynamic.ResourceInterface {
	return f.admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(namespace)
}

// namespace creates a namespace and returns its name.
func (f *fleet) namespace(name string) string {
	f.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	namespaces := f.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	_, err := namespaces.Create(f.t.Context(), object, metav1.CreateOptions{})
	f.must(err)
	return name
}

func (f *fleet) patch(in dynamic.ResourceInterface, name, patch string) {
	f.t.Helper()
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	_, err := in.Patch(f.t.Context(), name, types.MergePatchType, []byte(patch), options)
	f.must(err)
}

func (f *fleet) delete(in dynamic.ResourceInterface, name string) {
	f.t.Helper()
	f.must(in.Delete(f.t.Context(), name, metav1.DeleteOptions{}))
}

// decodeAs returns an object as one of our types.
func decodeAs[T any](f *fleet, u *unstructured.Unstructured) *T {
	f.t.Helper()
	typed := new(T)
	f.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed))
	return typed
}

// autopilot returns an RdsAutopilot, or nil if there is none.
func (f *fleet) autopilot(namespace, name string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	u, err := f.raps(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.must(err)
	return decodeAs[v1alpha1.RdsAutopilot](f, u)
}

// autopilots returns the RdsAutopilots of all namespaces.
func (f *fleet) autopilots() []v1alpha1.RdsAutopilot {
	f.t.Helper()
	var all []v1alpha1.RdsAutopilot
	for _, u := range f.kube.Objects(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)) {
		all = append(all, *decodeAs[v1alpha1.RdsAutopilot](f, u))
	}
	return all
}

// request is a size and a flavor in the spec of an Rds.
type request struct {
	volumeGB int
	flavor   string
}

// requested returns the size and the flavor that an Rds in the namespace default requests.
func (f *fleet) requested(db string) request {
	f.t.Helper()
	u, err := f.rdss("default").Get(f.t.Context(), db, metav1.GetOptions{})
	f.must(err)
	spec := decodeAs[otcv1.Rds](f, u).Spec
	return request{int(spec.VolumeSize), spec.FlavorRef}
}

// waitArmed waits until a database is armed, and returns its autopilot.
func (f *fleet) waitArmed(namespace, name string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	return f.waitArmedCondition(namespace, name, metav1.ConditionTrue, "AlarmsInPlace")
}

// waitNotArmed waits until Armed is False with this reason, and returns the autopilot.
func (f *fleet) waitNotArmed(namespace, name, reason string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	return f.waitArmedCondition(namespace, name, metav1.ConditionFalse, reason)
}

func (f *fleet) waitArmedCondition(namespace, name string, status metav1.ConditionStatus, reason string,
) (a *v1alpha1.RdsAutopilot) {
	f.t.Helper()
	f.waitUntil(fmt.Sprintf("Armed of %s/%s is %s with the reason %s", namespace, name, status, reason), func() bool {
		a = f.autopilot(namespace, name)
		return a != nil && armedCondition(a).Status == status && armedCondition(a).Reason == reason
	})
	return a
}

// areArmed reports whether exactly n databases are armed.
func (f *fleet) areArmed(n int) bool {
	for _, a := range f.autopilots() {
		if isArmed(&a) {
			n--
		}
	}
	return n == 0
}

func isArmed(a *v1alpha1.RdsAutopilot) bool {
	return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionArmed)
}

// armedCondition returns the condition Armed, or an empty one if it is not set.
func armedCondition(a *v1alpha1.RdsAutopilot) metav1.Condition {
	if c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// events returns the events with this reason on the objects with this name, ordered by kind.
func (f *fleet) events(namespace, name, reason string) []eventsv1.Event {
	f.t.Helper()
	client, err := kubernetes.NewForConfig(f.kube.Config())
	f.must(err)
	list, err := client.EventsV1().Events(namespace).List(f.t.Context(), metav1.ListOptions{})
	f.must(err)
	found := slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Name != name || e.Reason != reason
	})
	slices.SortFunc(found, func(a, b eventsv1.Event) int { return strings.Compare(a.Regarding.Kind, b.Regarding.Kind) })
	return found
}

// mark returns the mark of the rules of a database.
func (f *fleet) mark(namespace, name string) alarms.Mark {
	return alarms.Mark{Namespace: namespace, Name: name, Cluster: f.clusterID()}
}

// clusterID returns the uid of the system namespace.
func (f *fleet) clusterID() string {
	f.t.Helper()
	u, err := f.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Get(f.t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	f.must(err)
	return string(u.GetUID())
}

// topic returns what the ConfigMap of the topic holds; nil if there is none.
func (f *fleet) topic() map[string]string {
	f.t.Helper()
	u, err := f.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ownNamespace).
		Get(f.t.Context(), k8s.TopicConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.must(err)
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	f.must(err)
	return data
}

// rulesOf returns the rules of a database in the cloud, by metric.
func (f *fleet) rulesOf(namespace, name string) map[v1alpha1.Metric]simcloud.Rule {
	f.t.Helper()
	found, mark := map[v1alpha1.Metric]simcloud.Rule{}, f.mark(namespace, name)
	for _, r := range f.sim.Rules() {
		for _, m := range autopilot.Metrics() {
			if r.Name == mark.RuleName(m) {
				found[m] = r
			}
		}
	}
	return found
}

// checkAlarms fails unless there is one topic with one confirmed subscription and a rule for each metric, and the status
// agrees. It returns the rules.
func (f *fleet) checkAlarms(a *v1alpha1.RdsAutopilot) map[v1alpha1.Metric]simcloud.Rule {
	f.t.Helper()
	topic, id := f.topic(), a.Namespace+"/"+a.Name
	var subscriptions []simcloud.Subscription
	for _, s := range f.sim.Subscriptions() {
		if s.TopicURN == topic["topicURN"] {
			subscriptions = append(subscriptions, s)
		}
	}
	if len(subscriptions) != 1 || subscriptions[0].Status != simcloud.Confirmed || topic["subscription"] != "Confirmed" {
		f.t.Fatalf("the topic is %v, and its subscriptions are %+v", topic, subscriptions)
	}
	rules := f.rulesOf(a.Namespace, a.Name)
	if len(rules) != 3 || len(a.Status.Alarms.Rules) != 3 {
		f.t.Fatalf("%s has %d rules, and status.alarms is %+v", id, len(rules), a.Status.Alarms)
	}
	mark := f.mark(a.Namespace, a.Name)
	mark.Recommends = a.Spec.Mode == v1alpha1.ModeRecommend
	for _, want := range a.Status.Alarms.Rules {
		r := rules[want.Metric]
		dimension, policy := r.Metric.Dimensions[0], r.Condition.Value == float64(want.ThresholdPercent)
		notifies := len(r.AlarmActions) == 1 && slices.Equal(r.AlarmActions[0].NotificationList, []string{topic["topicURN"]})
		if r.ID != want.AlarmID || !policy || !notifies || !r.Enabled || !r.ActionEnabled ||
			r.Description != mark.String() || dimension.Name+":"+dimension.Value != want.Dimension {
			f.t.Errorf("%s: the %s rule is %+v, and status.alarms has %+v", id, want.Metric, r, want)
		}
	}
	return rules
}
