// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// heard keeps what the callbacks were given.
type heard[T any] struct {
	mu   sync.Mutex
	seen [][2]T
}

func (h *heard[T]) hear(old, new T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, [2]T{old, new})
}

func (h *heard[T]) all() [][2]T {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clip(h.seen)
}

func TestCacheNeverHoldsPasswords(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	createRds(t, c, ns, "before")
	var told heard[*otcv1.Rds] // as the cache has them: targets have no place for a password
	if err := c.OnRds(told.hear); err != nil {
		t.Fatal(err)
	}
	run(t, c)
	createAutopilot(t, c, ns, "after")
	eventually(t, "both are in the cache", func() bool {
		_, own := c.Autopilot(ns, "after")
		return own && c.Target(ns, "before") != nil && c.Target(ns, "after") != nil
	})
	c.EachRds(func(rds *otcv1.Rds) {
		if rds.Namespace == ns && (rds.Spec.VolumeSize != 40 || len(rds.Annotations) > 0) {
			t.Errorf("the cache has %s", encoded(t, rds))
		}
	})
	for name, held := range map[string]any{"Rds": each(c.EachRds), "RdsAutopilots": each(c.EachAutopilot), "callbacks": told.all()} {
		text := encoded(t, held)
		if !strings.Contains(text, ns) {
			t.Errorf("%s: nothing of this test in it", name)
		}
		if strings.Contains(text, secret) || strings.Contains(text, "managedFields") || strings.Contains(text, "last-applied") {
			t.Errorf("%s hold what they must not: %s", name, text)
		}
	}
}

func TestIndexesFollowStatus(t *testing.T) {
	t.Parallel()
	ns := shared.Cluster(t).Namespace(t)
	c := connect(t, ns)
	run(t, c)
	a := createAutopilot(t, c, ns, "shop")
	names := func(topic string) (names []string) {
		for _, a := range c.ByTopic(topic) {
			names = append(names, a.Namespace+"/"+a.Name)
		}
		return names
	}
	arm := func(topic string) {
		armed := a.Status
		armed.Alarms.TopicURN = topic
		var err error
		if a, err = c.WriteStatus(t.Context(), a, armed); err != nil {
			t.Fatal(err)
		}
	}
	second := "urn:smn:eu-de:p:" + autopilotv1.CloudName(ns, "shop", string(a.UID))
	first := second + "9"
	want := []string{ns + "/shop"}

	arm(first)
	eventually(t, "it is found by its topic", func() bool { return cmp.Equal(want, names(first)) })
	arm(second)
	eventually(t, "it is found by its new topic", func() bool { return cmp.Equal(want, names(second)) })
	if got := names(first); got != nil {
		t.Errorf("by its old topic too: %v", got)
	}
	arm("")
	eventually(t, "nobody is found", func() bool { return names(second) == nil })
	if !c.Expects(second) || c.Expects(first) || c.Expects("") {
		t.Errorf("a topic named after it is to come: %t, and no other: %t", c.Expects(second), c.Expects(first))
	}
	if got := names(""); got != nil {
		t.Errorf("without a topic: %v", got)
	}

	const cert = "https://smn.example/smn/SMN_eu-de_0f1e.pem"
	if err := c.WriteIntake(t.Context(), a, autopilotv1.Intake{SigningCertURL: cert}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its signing certificate is known", func() bool { return c.SignedBefore(cert) })
	if c.SignedBefore("") || c.SignedBefore(cert+"x") {
		t.Error("another certificate is known too")
	}

	byID := func(id string) int { return len(c.TargetsByInstance(id)) }
	eventually(t, "the Rds is found by its instance", func() bool { return byID("instance-shop") == 1 })
	if _, err := rdss(t, ns).Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"status":{"id":"another"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Rds is found by its new instance", func() bool { return byID("another") == 1 && byID("instance-shop") == 0 })
}

func TestCallbacksSeeEveryVersion(t *testing.T) {
	t.Parallel()
	ns := shared.Cluster(t).Namespace(t)
	c := connect(t, ns)
	var rds heard[*autopilot.Target]
	var own heard[*autopilotv1.RdsAutopilot]
	if err := c.OnTarget(rds.hear); err != nil {
		t.Fatal(err)
	}
	if err := c.OnAutopilot(own.hear); err != nil {
		t.Fatal(err)
	}
	run(t, c)

	a := createAutopilot(t, c, ns, "shop")
	// The operator drops the field at once, and puts it to false, and the Rds goes.
	for _, patch := range []string{`{"spec":{"autopilot":null}}`, `{"spec":{"autopilot":false}}`} {
		if _, err := rdss(t, ns).Patch(t.Context(), "shop", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := rdss(t, ns).Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "four things were told", func() bool { return len(rds.all()) == 4 })
	says := func(target *autopilot.Target) string {
		switch {
		case target == nil:
			return "nothing"
		case target.Switch == "":
			return "absent"
		}
		return string(target.Switch)
	}
	var got []string
	for _, pair := range rds.all() {
		got = append(got, says(pair[0])+" to "+says(pair[1]))
	}
	if diff := cmp.Diff([]string{"nothing to On", "On to absent", "absent to Off", "Off to nothing"}, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}

	a, err := c.WriteStatus(t.Context(), a, withGeneration(a, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteIntake(t.Context(), a, intake(signal(autopilotv1.MetricCPU, "m1"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three things were told", func() bool { return len(own.all()) == 3 })
	var others []bool // what differs is not only the leader's part of the status
	for _, pair := range own.all() {
		if pair[0] == nil || pair[1] == nil {
			others = append(others, true)
			continue
		}
		before, after := pair[0].DeepCopy(), pair[1].DeepCopy()
		for _, a := range []*autopilotv1.RdsAutopilot{before, after} {
			a.ResourceVersion, a.Status = "", autopilotv1.Status{Intake: a.Status.Intake}
		}
		others = append(others, !equality.Semantic.DeepEqual(before, after))
	}
	if diff := cmp.Diff([]bool{true, false, true}, others); diff != "" {
		t.Errorf("told of creation, the leader's write, the webhook's (-want +got):\n%s", diff)
	}
}

func TestOnlyWatchedNamespacesAreSeen(t *testing.T) {
	t.Parallel()
	cluster := shared.Cluster(t)
	first, second, third := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t)
	c := connect(t, first, second, first)
	run(t, c)
	for _, ns := range []string{first, second, third} {
		a := createAutopilot(t, c, ns, "shop")
		armed := a.Status
		armed.Alarms.TopicURN = "urn:" + first
		if _, err := c.WriteStatus(t.Context(), a, armed); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both are in the cache", func() bool { return len(c.ByTopic("urn:"+first)) == 2 })
	if all, rds := each(c.EachAutopilot), each(c.EachTarget); len(all) != 2 || len(rds) != 2 {
		t.Errorf("%d RdsAutopilots and %d Rds in the cache", len(all), len(rds))
	}
	if c.Target(third, "shop") != nil {
		t.Error("sees a namespace that it does not watch")
	}
	if live, err := c.LiveAutopilots(t.Context()); err != nil || len(live) != 2 {
		t.Errorf("live: %d, %v", len(live), err)
	}
}

func each[T any](visit func(func(T))) (all []T) {
	visit(func(o T) { all = append(all, o) })
	return all
}

func TestAutopilotOfDoctorIsFoundByItsTopicAlone(t *testing.T) {
	t.Parallel()
	ns := shared.Cluster(t).Namespace(t)
	c := connect(t, ns)
	var told heard[*autopilotv1.RdsAutopilot]
	if err := c.OnAutopilot(told.hear); err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(shared.Cluster(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	raps := objects.Resource(autopilotv1.GroupVersion().WithResource(autopilotv1.Resource)).Namespace(ns)
	const name = "autopilot-doctor-x"
	if err := c.CreateForDoctor(t.Context(), ns, name); err != nil {
		t.Fatal(err)
	}
	const topic = "urn:smn:eu-de:p:autopilot-doctor_x_y"
	patch := []byte(`{"status":{"alarms":{"topicURN":"` + topic + `"}}}`)
	if _, err := raps.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: "Strict"}, "status"); err != nil {
		t.Fatal(err)
	}
	run(t, c)
	createAutopilot(t, c, ns, "shop")
	eventually(t, "it is found by its topic", func() bool { return len(c.ByTopic(topic)) == 1 })
	eventually(t, "the other is told of", func() bool { return len(told.all()) > 0 })
	if _, found := c.Autopilot(ns, name); found {
		t.Error("it is an autopilot like any other")
	}
	for _, a := range each(c.EachAutopilot) {
		if a.Name == name {
			t.Error("it is among all autopilots")
		}
	}
	for _, pair := range told.all() {
		if pair[1] != nil && pair[1].Name == name {
			t.Error("the leader was told of it")
		}
	}
}
