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

// migration is one database that goes the ways of docs/which-way.md, one after the other.
type migration struct {
	*world.World
	*world.DB
	t     *testing.T
	ctx   context.Context //nolint:containedctx // that of the test
	rdss  dynamic.ResourceInterface
	armed []string // names and ids of what it is armed with

	mu       sync.Mutex
	disarmed []string // why it was not Armed in between
}

// The commands of docs/which-way.md lead from each way to the next, and what is armed stays: the same topic, the same
// subscription and the same rules. After each step the way that is set is the one that is gone.
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
	m.armed = m.has()
	go m.WatchAutopilot(m.ctx, func(a *v1alpha1.RdsAutopilot) {
		armed := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed)
		if armed.Status != metav1.ConditionTrue && armed.Message != "The Rds has no status.id yet" { // until the operator has found it
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
			t.Errorf("it is not: %s", l.Raw)
		}
	}
}

// commands are the patches of kubectl in a page, by what is special about them.
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
	m.wait("it has seen "+patch, func(a *v1alpha1.RdsAutopilot) bool { return a.Status.ObservedGeneration == a.Generation })
}

func (m *migration) wait(what string, done func(*v1alpha1.RdsAutopilot) bool) {
	m.t.Helper()
	if _, err := m.WaitAutopilot(m.ctx, what, done); err != nil {
		m.t.Fatal(err)
	}
}

// grows lets the volume run full and waits for that size. Each step is twice the last one, because all are within an hour.
func (m *migration) grows(how string, toGB int) {
	m.t.Helper()
	if err := m.SetWorkload(simcloud.Workload{UsedGB: 0.92 * float64(m.Instance().VolumeGB)}); err != nil {
		m.t.Fatal(err)
	}
	m.wait(fmt.Sprintf("it has %d GB %s", toGB, how), func(a *v1alpha1.RdsAutopilot) bool {
		return a.Status.Pending == nil && a.Status.Instance.VolumeGB == int32(toGB) && m.Instance().VolumeGB == toGB && state(a, v1alpha1.MetricStorage) == v1alpha1.StateOK
	})
	if diff := cmp.Diff(m.armed, m.has()); diff != "" {
		m.t.Errorf("%s it is armed otherwise than at first:\n%s", how, diff)
	}
}

// has is what is there for it in the cloud: all that this cloud has.
func (m *migration) has() (all []string) {
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
