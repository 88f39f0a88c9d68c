// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// migration takes one database through the ways of docs/which-way.md, one after the other.
type migration struct {
	*world.World
	*world.DB
	t     *testing.T
	ctx   context.Context //nolint:containedctx // the test's
	rdss  dynamic.ResourceInterface
	armed []string // cloud objects after the first arming

	mu       sync.Mutex
	disarmed []string // messages of Armed while it was not True
}

// The commands of docs/which-way.md lead from each way to the next. Topic, subscription and rules stay the same, and after each
// step the database grows in the new way.
func TestMigrationBetweenApplyModesKeepsTheAlarms(t *testing.T) {
	level.Long(t)
	m := &migration{t: t, World: start(t, world.Options{})}
	m.ctx = world.Within(t)
	p := m.MustServe(t, "--allow-apply", "Cloud", "--allowed-instances", m.World.Namespace+"/*")
	client, err := dynamic.NewForConfig(m.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	m.rdss = client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(m.World.Namespace)
	m.DB = m.MustAdd(t, world.Database{Name: "my-rds", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Autopilot: true})
	m.wait("it is armed", world.Armed)
	m.armed = m.cloudObjects()
	go m.WatchAutopilot(m.ctx, func(a *v1alpha1.RdsAutopilot) {
		armed := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed)
		if armed.Status != metav1.ConditionTrue && armed.Message != "The Rds has no status.id yet" { // until the operator has found the instance
			m.mu.Lock()
			defer m.mu.Unlock()
			m.disarmed = append(m.disarmed, armed.Message)
		}
	})
	commands := m.commands("docs/which-way.md")

	m.grows("with its operator", 110)
	m.patch(commands[`"apply":"Cloud"`])
	m.Operator.Pause()
	m.grows("by operator and cloud, and the operator hangs", 130)
	m.patch(`{"spec":{"apply":"Operator"}}`)
	m.Operator.Resume()
	m.grows("with its operator again", 170)

	m.patch(fmt.Sprintf(`{"spec":{"apply":"Cloud","instanceID":%q}}`, m.ID))
	m.patch(commands[`"ownerReferences":null`])
	m.Operator.Pause()
	rds, err := m.rdss.Get(m.ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.rdss.Delete(m.ctx, m.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	m.grows("without an Rds", 250)

	spec, _, _ := unstructured.NestedMap(rds.Object, "spec")
	spec["volumesize"], spec["flavorref"] = int64(m.Instance().VolumeGB), m.Instance().Flavor
	again := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rds.GetAPIVersion(), "kind": rds.GetKind(), "metadata": map[string]any{"name": m.Name}, "spec": spec,
	}}
	if _, err := m.rdss.Create(m.ctx, again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.Operator.Resume()
	if _, err := m.WaitRds(m.ctx, "its operator has found the instance", func(r *otcv1.Rds) bool { return r.Status.ID == m.ID }); err != nil {
		t.Fatal(err)
	}
	m.patch(`{"spec":{"apply":"Operator","instanceID":null}}`)
	m.grows("with an Rds again", 370)

	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.disarmed) > 0 {
		t.Errorf("not armed on the way: %q", m.disarmed)
	}
	for _, l := range p.Lines() {
		if strings.Contains(l.Raw, "--allowed-instances is empty") {
			t.Errorf("--allowed-instances is set, but the log says: %s", l.Raw)
		}
	}
}

// commands returns the patches of kubectl in a page, by a part of them that identifies each.
func (m *migration) commands(page string) map[string]string {
	m.t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		m.t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range regexp.MustCompile(`kubectl patch rap my-rds --type merge -p '(.+)'`).FindAllStringSubmatch(string(text), -1) {
		for _, special := range []string{`"apply":"Cloud"`, `"ownerReferences":null`} {
			if strings.Contains(c[1], special) {
				found[special] = c[1]
			}
		}
	}
	if len(found) != 2 {
		m.t.Fatalf("%s has the commands %v", page, found)
	}
	return found
}

func (m *migration) patch(patch string) {
	m.t.Helper()
	if err := m.PatchAutopilot(m.ctx, patch); err != nil {
		m.t.Fatal(err)
	}
	m.wait("the patch is observed: "+patch, func(a *v1alpha1.RdsAutopilot) bool { return a.Status.ObservedGeneration == a.Generation })
}

func (m *migration) wait(what string, done func(*v1alpha1.RdsAutopilot) bool) {
	m.t.Helper()
	if _, err := m.WaitAutopilot(m.ctx, what, done); err != nil {
		m.t.Fatal(err)
	}
}

// grows fills the volume and waits for that size. Each step is twice the last one, because all are within an hour.
func (m *migration) grows(how string, toGB int) {
	m.t.Helper()
	if err := m.SetWorkload(simcloud.Workload{UsedGB: 0.92 * float64(m.Instance().VolumeGB)}); err != nil {
		m.t.Fatal(err)
	}
	m.wait(fmt.Sprintf("it has %d GB %s", toGB, how), func(a *v1alpha1.RdsAutopilot) bool {
		return a.Status.Pending == nil && a.Status.Instance.VolumeGB == int32(toGB) && m.Instance().VolumeGB == toGB && state(a, v1alpha1.MetricStorage) == v1alpha1.StateOK
	})
	if diff := cmp.Diff(m.armed, m.cloudObjects()); diff != "" {
		m.t.Errorf("%s: other cloud objects than after the first arming:\n%s", how, diff)
	}
}

// cloudObjects returns all topics, subscriptions and rules of the cloud.
func (m *migration) cloudObjects() (all []string) {
	for _, t := range m.Cloud.Topics() {
		all = append(all, "topic "+t.URN)
	}
	for _, s := range m.Cloud.Subscriptions() {
		all = append(all, fmt.Sprintf("subscription %s %v", s.URN, s.Status))
	}
	for _, r := range m.Cloud.Rules() {
		all = append(all, "rule "+r.ID+" "+r.Name)
	}
	return all
}
