// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

// deletions deletes databases in a world. No controller of Kubernetes runs there, so the test itself deletes the objects of a
// namespace, and what an Rds owns.
type deletions struct {
	t       *testing.T
	w       *world.World
	client  *kubernetes.Clientset
	objects dynamic.Interface
	cluster string   // id
	foreign []string // the rules and topics of others
}

func newDeletions(t *testing.T, w *world.World) *deletions {
	t.Helper()
	d := &deletions{t: t, w: w}
	var err error
	if d.client, err = kubernetes.NewForConfig(w.Kube.Config()); err != nil {
		t.Fatal(err)
	}
	if d.objects, err = dynamic.NewForConfig(w.Kube.Config()); err != nil {
		t.Fatal(err)
	}
	system, err := d.client.CoreV1().Namespaces().Get(world.Within(t), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.cluster = string(system.UID)
	return d
}

// addStrangers adds topics and rules with names and descriptions like those of a database that does not exist yet.
func (d *deletions) addStrangers(namespace, name string) {
	d.t.Helper()
	ctx := world.Within(d.t)
	person, err := cloudClient(ctx, d.w)
	if err != nil {
		d.t.Fatal(err)
	}
	own := alarms.Mark{Namespace: namespace, Name: name, Cluster: d.cluster}
	for i := range 44 {
		if _, err := person.CreateTopic(ctx, fmt.Sprintf("rds-autopilot_%08x", i), own.String()); err != nil {
			d.t.Fatal(err)
		}
	}
	for i := range 55 {
		other := own
		other.Cluster = fmt.Sprintf("00000000-0000-4000-8000-%012x", i)
		_, err := person.CreateRule(ctx, otc.Rule{
			Name: other.RuleName(v1alpha1.MetricCPU), Description: []string{other.String(), "rds-autopilot " + name}[i%2],
			Namespace: otc.MetricNamespace, Metric: "rds001_cpu_util", Dimension: "rds_cluster_id", DimensionValue: "of-others",
			Period: 300, Count: 3, Filter: "average", Comparison: ">=", Threshold: 90, Unit: "%", Level: 2, Enabled: true,
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
	d.foreign = d.inCloud()
}

// inCloud returns all rules and topics.
func (d *deletions) inCloud() (names []string) {
	for _, r := range d.w.Cloud.Rules() {
		names = append(names, "rule "+r.ID+" "+r.Name+" "+r.Description)
	}
	for _, t := range d.w.Cloud.Topics() {
		names = append(names, "topic "+t.Name)
	}
	slices.Sort(names)
	return names
}

// delete deletes an object, and fails the test if the object waits for anybody.
func (d *deletions) delete(what string, db *world.DB) {
	d.t.Helper()
	ctx := world.Within(d.t)
	in := d.objects.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(db.Namespace)
	switch what {
	case "namespace":
		namespaces := d.client.CoreV1().Namespaces()
		err := namespaces.Delete(ctx, db.Namespace, metav1.DeleteOptions{})
		d.delete("RdsAutopilot", db)
		d.delete("Rds", db)
		if ns, getErr := namespaces.Get(ctx, db.Namespace, metav1.GetOptions{}); getErr == nil {
			ns.Spec.Finalizers = nil
			_, err = namespaces.Finalize(ctx, ns, metav1.UpdateOptions{})
		}
		if err != nil {
			d.t.Errorf("delete namespace %s: %v", db.Namespace, err)
		}
		return
	case "Rds":
		in = d.objects.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(db.Namespace)
	}
	if err := in.Delete(ctx, db.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		d.t.Errorf("delete the %s of %s: %v", what, db.Name, err)
	}
	if u, err := in.Get(ctx, db.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		d.t.Errorf("%s of %s is deleted and still there: %+v, %v", what, db.Name, u, err)
	}
}

// A database, its RdsAutopilot and its namespace are deleted in every order. Nothing in Kubernetes waits for the service, and once
// it has swept, nothing of theirs is in the cloud.
func TestDeletionsWaitForNobodyAndLeaveNothingInTheCloud(t *testing.T) {
	t.Parallel()
	w := shared.StartAlone(t, world.Options{Race: level.IsLong(t)})
	d := newDeletions(t, w)
	d.addStrangers(w.Namespace, "stays")
	p := w.MustServe(t)
	stays := w.MustAdd(t, world.Database{Name: "stays", Flavor: "rds.mysql.n1.large.4", Autopilot: true})
	armed := func(db *world.DB) {
		t.Helper()
		if _, err := db.WaitAutopilot(world.Within(t), "it is armed", world.Armed); err != nil {
			t.Fatal(err)
		}
	}
	armed(stays)
	orders := [][]string{
		{"Rds", "RdsAutopilot", "namespace"}, {"Rds", "namespace"}, {"RdsAutopilot", "Rds", "namespace"}, {"RdsAutopilot", "namespace"}, {"namespace"},
	}
	for _, isRunning := range []bool{true, false} {
		var all []*world.DB
		for i := range orders {
			name := fmt.Sprintf("%d-%t", i, isRunning)
			all = append(all, w.MustAdd(t, world.Database{Namespace: "ns-" + name, Name: "db-" + name, Flavor: "rds.mysql.n1.large.4", Autopilot: true}))
		}
		for _, db := range all {
			armed(db)
		}
		if !isRunning {
			if err := p.Stop(world.Within(t)); err != nil {
				t.Fatal(err)
			}
		}
		for i, db := range all {
			for _, what := range orders[i] {
				d.delete(what, db)
			}
		}
		if !isRunning {
			p = w.MustServe(t)
		}
		d.waitForRules(stays, 3)
	}
	if err := stays.PatchAutopilot(world.Within(t), `{"spec":{"mode":"Off"}}`); err != nil {
		t.Fatal(err)
	}
	d.waitForRules(stays, 0)
	d.delete("RdsAutopilot", stays)
}

// waitForRules waits until the cloud has only what strangers have, and that many rules of a database with its topic.
func (d *deletions) waitForRules(db *world.DB, want int) {
	d.t.Helper()
	var diff string
	err := world.Eventually(world.Within(d.t), "nothing is left", func(context.Context) (bool, error) {
		rules, topics := 0, 0
		others := slices.DeleteFunc(d.inCloud(), func(name string) bool {
			isRule := strings.HasSuffix(name, alarms.Mark{Namespace: db.Namespace, Name: db.Name, Cluster: d.cluster}.String())
			isTopic := name == "topic "+alarms.TopicName(d.cluster, "rds-autopilot")
			if isRule {
				rules++
			}
			if isTopic {
				topics++
			}
			return isRule || isTopic
		})
		diff = cmp.Diff(d.foreign, others)
		return diff == "" && rules == want && topics == min(want, 1), nil
	})
	if err != nil {
		d.t.Errorf("%v; -strangers +cloud:\n%s", err, diff)
	}
}
