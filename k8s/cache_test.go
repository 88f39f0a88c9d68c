// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func each[T any](visit func(func(T))) (all []T) {
	visit(func(o T) { all = append(all, o) })
	return all
}

func TestCacheNeverHoldsPasswords(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t, k.namespace)
	k.createRds(t, c, "before")
	run(t, c)
	k.createAutopilot(t, c, "after")
	eventually(t, "both are in the cache", func() bool {
		_, hasAutopilot := c.Autopilot(k.namespace, "after")
		return hasAutopilot && c.Target(k.namespace, "before") != nil && c.Target(k.namespace, "after") != nil
	})
	for name, held := range map[string]any{"Rds": each(c.EachRds), "RdsAutopilots": each(c.EachAutopilot)} {
		text := encoded(t, held)
		if !strings.Contains(text, "after") {
			t.Errorf("%s: nothing of this test in it", name)
		}
		if strings.Contains(text, secret) || strings.Contains(text, "managedFields") || strings.Contains(text, "last-applied") {
			t.Errorf("%s hold what they must not: %s", name, text)
		}
	}
}

func TestIndexesFollowTheStatus(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t, k.namespace)
	run(t, c)
	a := k.createAutopilot(t, c, "shop")
	setRule := func(id string) {
		t.Helper()
		armed := a.Status
		armed.Alarms.Rules = []autopilotv1.Rule{{Metric: autopilotv1.MetricCPU, AlarmID: id}}
		var err error
		if a, err = c.WriteStatus(t.Context(), a, armed); err != nil {
			t.Fatal(err)
		}
	}
	found := func(id string) int { return len(c.ByRule(id)) }
	setRule("al1")
	eventually(t, "it is found by its rule", func() bool { return found("al1") == 1 })
	setRule("al2")
	eventually(t, "it is found by its new rule", func() bool { return found("al2") == 1 && found("al1") == 0 })

	const cert = "https://smn.example/smn/SMN_eu-de_0f1e.pem"
	must(t, c.WriteIntake(t.Context(), a, autopilotv1.Intake{SigningCertURL: cert}))
	eventually(t, "its signing certificate is known", func() bool { that, some := c.SignedBefore(cert); return that && some })
	for _, url := range []string{"", cert + "x"} {
		if that, some := c.SignedBefore(url); that || !some {
			t.Errorf("%q has signed: %t, any other: %t", url, that, some)
		}
	}
}

// The operator drops spec.autopilot within a second. The callback must see the version in between.
func TestCallbackSeesEveryVersion(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t, k.namespace)
	seen := make(chan *autopilot.Target, 100)
	must(t, c.OnTarget(func(_, now *autopilot.Target) { seen <- now }))
	run(t, c)
	k.createRds(t, c, "shop")
	for _, patch := range []string{`{"spec":{"autopilot":null}}`, `{"spec":{"autopilot":false}}`} {
		if _, err := k.rdss(t).Patch(t.Context(), "shop", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, k.rdss(t).Delete(t.Context(), "shop", metav1.DeleteOptions{}))
	eventually(t, "there were four calls", func() bool { return len(seen) == 4 })
	var got []autopilotv1.SwitchValue
	for range 4 {
		if target := <-seen; target != nil {
			got = append(got, target.Switch)
		}
	}
	if diff := cmp.Diff([]autopilotv1.SwitchValue{autopilotv1.SwitchOn, "", autopilotv1.SwitchOff}, got); diff != "" {
		t.Errorf("switches (-want +got):\n%s", diff)
	}
}

func TestOnlyWatchedNamespacesAreInTheCache(t *testing.T) {
	t.Parallel()
	first := newKube(t)
	second, third := first.withNamespace(t, first.namespace+"-2"), first.withNamespace(t, first.namespace+"-3")
	c := first.connect(t, first.namespace, second.namespace, first.namespace)
	run(t, c)
	for _, k := range []kube{third, first, second} {
		k.createAutopilot(t, c, "shop")
	}
	eventually(t, "both are in the cache", func() bool {
		return len(each(c.EachAutopilot)) == 2 && len(each(c.EachTarget)) == 2
	})
	if c.Target(third.namespace, "shop") != nil {
		t.Error("the cache has a namespace that is not watched")
	}
}

func TestAutopilotIsATargetWhenItNamesItsInstanceAndThereIsNoRds(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	ns := k.namespace
	c := k.connect(t, ns)
	run(t, c)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": autopilotv1.GroupVersion().String(), "kind": autopilotv1.Kind, "metadata": map[string]any{"name": "shop"},
		"spec": map[string]any{"apply": "Cloud", "instanceID": "instance-shop"},
	}}
	if _, err := k.rdsAutopilots(t).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is in the cache", func() bool { return c.Target(ns, "shop") != nil })
	a, ok := c.Autopilot(ns, "shop")
	live, err := c.LiveTarget(t.Context(), ns, "shop")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i, target := range []*autopilot.Target{live, c.Target(ns, "shop")} {
		if !target.NoRds || target.InstanceID != "instance-shop" || target.UID != a.UID || target.Wanted.VolumeGB != 0 {
			t.Errorf("%d: %+v", i, target)
		}
	}

	rds := k.createRds(t, c, "shop")
	eventually(t, "the Rds stands for both", func() bool { return c.Target(ns, "shop").UID == rds.UID })
}

// The definition of another operator may allow what ours refuses. One such object must not hide all others.
func TestRdsWithAFieldOfAnotherTypeIsSkippedAndNamed(t *testing.T) {
	t.Parallel()
	k := newKubeInMemory(t)
	c := k.connect(t)
	a := k.createAutopilot(t, c, "odd")
	set := func(spec string) {
		t.Helper()
		if _, err := k.rdss(t).Patch(t.Context(), "odd", types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"volumesize":"100"}`)
	seen := make(chan *autopilot.Target, 100)
	must(t, c.OnTarget(func(_, now *autopilot.Target) { seen <- now }))
	run(t, c)
	k.createRds(t, c, "shop")
	eventually(t, "the other one is in the cache", func() bool { return c.Target(k.namespace, "shop") != nil && len(each(c.EachTarget)) == 1 })
	if _, err := c.LiveTarget(t.Context(), k.namespace, "odd"); !errors.Is(err, autopilot.ErrGone) || c.UnreadableRds() != 1 {
		t.Errorf("the odd one: %v, %d are skipped", err, c.UnreadableRds())
	}
	a, err := c.WriteStatus(t.Context(), a, a.Status)
	if condition := meta.FindStatusCondition(a.Status.Conditions, "Unreadable"); err != nil || condition == nil || !strings.Contains(condition.Message, "spec.volumesize is a string") {
		t.Errorf("condition %+v, %v", condition, err)
	}
	events := k.as(t, schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).Namespace(k.namespace)
	eventually(t, "events name both objects", func() bool {
		found, err := events.List(t.Context(), metav1.ListOptions{})
		return err == nil && strings.Count(encoded(t, found), "spec.volumesize is a string") == 2
	})
	set(`{"autopilot":"true","volumesize":40}`)
	set(`{"autopilot":true}`)
	eventually(t, "it is a target", func() bool { return c.Target(k.namespace, "odd") != nil })
	if a, err = c.WriteStatus(t.Context(), a, a.Status); err != nil || meta.FindStatusCondition(a.Status.Conditions, "Unreadable") != nil {
		t.Errorf("conditions %+v, %v", a.Status.Conditions, err)
	}
	eventually(t, "both targets were added", func() bool { return len(seen) == 2 })
}

// A namespace that may not be listed any more has no events.
func TestObjectThatALiveReadDoesNotFindLeavesTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubeInMemory(t)
		api := &refusing{next: k.service.Transport}
		api.set(in(0))
		k.service.Transport = api
		c := k.connect(t, k.namespace)
		run(t, c)
		k.createAutopilot(t, c, "orders")
		time.Sleep(time.Second)
		api.set(in(http.StatusForbidden, "/rdss", "/rdsautopilots"))
		time.Sleep(time.Hour) // until the watches have ended
		for _, in := range []dynamic.ResourceInterface{k.rdsAutopilots(t), k.rdss(t)} {
			must(t, in.Delete(t.Context(), "orders", metav1.DeleteOptions{}))
		}
		isCached := func() (target, rap bool) {
			_, rap = c.Autopilot(k.namespace, "orders")
			return c.Target(k.namespace, "orders") != nil, rap
		}
		_, err := c.LiveTarget(t.Context(), k.namespace, "orders")
		_, err2 := c.LiveAutopilot(t.Context(), k.namespace, "orders")
		if target, rap := isCached(); !target || !rap || errors.Is(errors.Join(err, err2), autopilot.ErrGone) {
			t.Errorf("a missing right: cached %t, %t, %v, %v", target, rap, err, err2)
		}
		api.set(func(r *http.Request) int {
			return in(http.StatusForbidden, "/rdss", "/rdsautopilots")(r) * (1 - strings.Count(r.URL.Path, "/orders"))
		})
		_, err = c.LiveTarget(t.Context(), k.namespace, "orders")
		if target, rap := isCached(); target || rap || !errors.Is(err, autopilot.ErrGone) {
			t.Errorf("not found: cached %t, %t, %v", target, rap, err)
		}
	})
}

func TestTopicIsStoredForAllReplicas(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	leader, replica := k.connect(t, k.namespace), k.connect(t, k.namespace)
	run(t, leader)
	run(t, replica)
	if stored, err := leader.LiveTopic(t.Context()); err != nil || stored != (autopilotv1.Topic{}) {
		t.Fatalf("before the first write: %+v, %v", stored, err)
	}
	requested := metav1.NewTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	full := autopilotv1.Topic{URN: "urn:smn:a", SubscriptionURN: "urn:smn:a:1", URL: "https://autopilot.example.com/smn",
		State: autopilotv1.SubscriptionPending, Message: "why", RequestedTime: &requested}
	for _, want := range []autopilotv1.Topic{{URN: "urn:smn:a"}, full, {}} {
		must(t, leader.WriteTopic(t.Context(), want))
		if got := leader.Topic(); got.URN != want.URN {
			t.Errorf("the cache of the writer has %+v", got)
		}
		stored, err := leader.LiveTopic(t.Context())
		if diff := cmp.Diff(want, stored); diff != "" || err != nil {
			t.Errorf("stored (-want +got), %v:\n%s", err, diff)
		}
		configMaps := k.as(t, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(k.own)
		if m, err := configMaps.Get(t.Context(), k8s.TopicConfigMap, metav1.GetOptions{}); err == nil && !cmp.Equal(m.GetLabels(), labels) {
			t.Errorf("labels %v", m.GetLabels())
		}
		eventually(t, "the other replica has it", func() bool { return cmp.Diff(want, replica.Topic()) == "" })
	}
	if err := leader.WriteTopic(t.Context(), autopilotv1.Topic{}); err != nil {
		t.Errorf("removed twice: %v", err)
	}
}
