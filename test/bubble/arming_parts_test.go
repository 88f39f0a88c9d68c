// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

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
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const small = "rds.mysql.n1.large.4"

// plain is an instance that nothing is wrong with.
func plain() simcloud.Instance { return simcloud.Instance{Flavor: small, VolumeGB: 100} }

// name is that of a database's topic and rules.
func name(a *v1alpha1.RdsAutopilot) string {
	return v1alpha1.CloudName(a.Namespace, a.Name, string(a.UID))
}

func (f *fleet) rdss(namespace string) dynamic.ResourceInterface {
	return f.admin.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(namespace)
}

func (f *fleet) raps(namespace string) dynamic.ResourceInterface {
	return f.admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(namespace)
}

func (f *fleet) namespace(name string) string {
	f.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	_, err := f.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(f.t.Context(), object, metav1.CreateOptions{})
	f.must(err)
	return name
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) patch(in dynamic.ResourceInterface, name, patch string) {
	f.t.Helper()
	_, err := in.Patch(f.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
	f.must(err)
}

// autopilot is nil where there is none.
func (f *fleet) autopilot(namespace, name string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	u, err := f.raps(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.must(err)
	a := &v1alpha1.RdsAutopilot{}
	f.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a))
	return a
}

// own is an RdsAutopilot that a person made.
func (f *fleet) own(namespace, name, spec string) {
	f.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind, "metadata": map[string]any{"name": name},
	}}
	var value map[string]any
	f.must(json.Unmarshal([]byte(spec), &value))
	u.Object["spec"] = value
	_, err := f.raps(namespace).Create(f.t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	f.must(err)
}

func (f *fleet) delete(in dynamic.ResourceInterface, name string) {
	f.t.Helper()
	f.must(in.Delete(f.t.Context(), name, metav1.DeleteOptions{}))
}

// says waits until the condition Armed has this status and reason, and returns the object.
func (f *fleet) says(namespace, name string, armed bool, reason string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	var a *v1alpha1.RdsAutopilot
	f.until(fmt.Sprintf("%s/%s says Armed=%v/%s", namespace, name, armed, reason), func() bool {
		a = f.autopilot(namespace, name)
		return a != nil && isArmed(a) == armed && armedCondition(a).Reason == reason
	})
	return a
}

// armedNow waits until a database is armed, and returns its autopilot.
func (f *fleet) armedNow(namespace, name string) *v1alpha1.RdsAutopilot {
	f.t.Helper()
	return f.says(namespace, name, true, "AlarmsInPlace")
}

func isArmed(a *v1alpha1.RdsAutopilot) bool {
	return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionArmed)
}

func armedCondition(a *v1alpha1.RdsAutopilot) metav1.Condition {
	if c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// things holds the topics, subscriptions and rules in the cloud that have one base name.
type things struct {
	topics        []simcloud.Topic
	subscriptions []simcloud.Subscription
	rules         []simcloud.Rule
}

func (t things) count() int { return len(t.topics) + len(t.subscriptions) + len(t.rules) }

func (t things) rule(m v1alpha1.Metric) simcloud.Rule {
	for _, r := range t.rules {
		if strings.HasSuffix(r.Name, "_"+string(m)) {
			return r
		}
	}
	return simcloud.Rule{}
}

// thingsOf are found by the exact names.
func (f *fleet) thingsOf(base string) (found things) {
	for _, x := range f.sim.Topics() {
		if x.Name == base {
			found.topics = append(found.topics, x)
		}
	}
	for _, x := range f.sim.Subscriptions() {
		if strings.HasSuffix(x.TopicURN, ":"+base) {
			found.subscriptions = append(found.subscriptions, x)
		}
	}
	for _, x := range f.sim.Rules() {
		for _, m := range autopilot.Metrics() {
			if x.Name == alarms.RuleName(base, m) {
				found.rules = append(found.rules, x)
			}
		}
	}
	return found
}

// whole fails unless there is one topic, one confirmed subscription and a rule for each metric, and the record agrees.
func (f *fleet) whole(t *testing.T, a *v1alpha1.RdsAutopilot) things {
	t.Helper()
	have := f.thingsOf(name(a))
	if len(have.topics) != 1 || len(have.subscriptions) != 1 || have.subscriptions[0].Status != simcloud.Confirmed || len(have.rules) != 3 {
		t.Fatalf("%s/%s has %d topics, subscriptions %+v and %d rules, want one, one confirmed and three",
			a.Namespace, a.Name, len(have.topics), have.subscriptions, len(have.rules))
	}
	seen := a.Status.Alarms
	if seen.TopicURN != have.topics[0].URN || seen.SubscriptionURN != have.subscriptions[0].URN || len(seen.Rules) != 3 {
		t.Errorf("%s/%s: the record is %+v", a.Namespace, a.Name, seen)
	}
	for _, r := range seen.Rules {
		there := have.rule(r.Metric)
		if there.ID != r.AlarmID || there.Condition.Value != float64(r.ThresholdPercent) || !there.Enabled || !there.ActionEnabled ||
			there.Description != have.topics[0].DisplayName || len(there.AlarmActions) != 1 || !slices.Equal(there.AlarmActions[0].NotificationList, []string{seen.TopicURN}) ||
			there.Metric.Dimensions[0].Name+":"+there.Metric.Dimensions[0].Value != r.Dimension {
			t.Errorf("%s/%s: the %s rule is %+v, the record %+v", a.Namespace, a.Name, r.Metric, there, r)
		}
	}
	return have
}

// events returns the events with this reason on the objects with this name, ordered by kind.
func (f *fleet) events(namespace, name, reason string) []eventsv1.Event {
	f.t.Helper()
	client, err := kubernetes.NewForConfig(f.kube.Config())
	f.must(err)
	list, err := client.EventsV1().Events(namespace).List(f.t.Context(), metav1.ListOptions{})
	f.must(err)
	found := slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != name || e.Reason != reason })
	slices.SortFunc(found, func(a, b eventsv1.Event) int { return strings.Compare(a.Regarding.Kind, b.Regarding.Kind) })
	return found
}

// person returns a client with the tenant's credentials, such as a person at the console uses.
func (f *fleet) person() *otc.Cloud {
	f.t.Helper()
	c, err := otc.Connect(f.t.Context(), otc.Options{Env: f.env(), Rate: 1000, Transport: f.sim})
	f.must(err)
	return c
}

// breaks makes requests fail until the caller calls the returned function.
func (f *fleet) breaks(fault func(*http.Request) *simcloud.Fault) (mend func()) {
	f.fault.Store(&fault)
	return func() { f.fault.Store(nil) }
}

// rest waits until a sweep has ended and the queue is empty.
func (s *service) rest() {
	s.t.Helper()
	s.until("the databases are at rest", func() bool {
		return s.metric("rds_autopilot_last_sweep_timestamp_seconds") > 0 && s.metric("rds_autopilot_waiting_databases") == 0
	})
}

// swept waits until a sweep that began after now has ended, with all it led to.
func (s *service) swept() {
	s.t.Helper()
	s.rest()
	seen := s.metric("rds_autopilot_sweep_duration_seconds")
	s.until("a sweep has ended", func() bool { return s.metric("rds_autopilot_sweep_duration_seconds") > seen })
	s.rest()
}

// rdsSpec is the spec of an Rds as it is.
func (f *fleet) rdsSpec(db string) map[string]any {
	f.t.Helper()
	u, err := f.rdss("default").Get(f.t.Context(), db, metav1.GetOptions{})
	f.must(err)
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	f.must(err)
	return spec
}
