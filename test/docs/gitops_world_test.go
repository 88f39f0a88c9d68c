// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	smallFlavor = "rds.mysql.n1.medium.4"
	largeFlavor = "rds.mysql.n1.large.2"

	kustomization = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: databases, namespace: flux-system}\n"
)

// gitops is a world with databases that tools apply from files. The operator is stopped while a tool resets a value, so
// that the tool always comes before the cloud.
type gitops struct {
	*shell
	page string
}

func newGitOps(t *testing.T) *gitops {
	t.Helper()
	s := newShell(t, "--max-flavor-changes=10")
	flux, err := filepath.Abs(root + "/.cache/bin/flux-apply")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(flux); err != nil {
		t.Skip("left out, because there is no flux-apply: make tools builds it")
	}
	page, err := os.ReadFile(root + "/docs/gitops.md")
	if err == nil {
		err = os.Symlink(flux, filepath.Join(s.dir, "bin", "flux-apply"))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.must(t, "kubectl create namespace shop && kubectl config set-context --current --namespace=shop")
	return &gitops{s, string(page)}
}

// block returns the block of the page that contains the text.
func (g *gitops) block(t *testing.T, text string) string {
	t.Helper()
	for _, b := range blocks(g.page) {
		if strings.Contains(b.text, text) {
			return b.text
		}
	}
	t.Fatalf("the page has no block with %q", text)
	return ""
}

// write writes a file into the folder in which commands are typed.
func (g *gitops) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// source writes NAME.yaml, the file of an Rds in Git. It is that of deploy/examples with another name.
func (g *gitops) source(t *testing.T, name string, replace ...string) {
	t.Helper()
	text, err := os.ReadFile(root + "/deploy/examples/rds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer(append([]string{"name: my-rds", "name: " + name + "\n  namespace: shop"}, replace...)...).Replace(string(text))
	g.write(t, name+".yaml", replaced)
}

// database adds an instance, and the policy of its Rds. The Rds is left to a tool.
func (g *gitops) database(t *testing.T, name string) *world.DB {
	t.Helper()
	db, err := g.world.AddDatabase(world.Within(t), world.Database{
		Namespace: "shop", Name: name, Flavor: smallFlavor, VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 10}, NoRds: true,
	})
	if err == nil {
		err = db.CreateAutopilot(world.Within(t), `{"flavor":{"cooldownSeconds":0}}`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// requests waits until the Rds requests a size and a flavor.
func (g *gitops) requests(t *testing.T, db *world.DB, size int32, flavor string) {
	t.Helper()
	_, err := db.WaitRds(world.Within(t), fmt.Sprintf("it requests %d GB and %s", size, flavor), func(r *otcv1.Rds) bool {
		return r.Spec.VolumeSize == size && r.Spec.FlavorRef == flavor
	})
	if err != nil {
		t.Fatal(err)
	}
}

// grow lets the databases need more storage and CPU, and waits until the cloud has both.
func (g *gitops) grow(t *testing.T, dbs ...*world.DB) {
	t.Helper()
	for _, db := range dbs {
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 31, CPUDemand: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, db := range dbs {
		g.requests(t, db, 50, largeFlavor)
		_, err := db.WaitAutopilot(world.Within(t), "the cloud has both", func(a *v1alpha1.RdsAutopilot) bool {
			in := db.Instance()
			return in.VolumeGB == 50 && in.Flavor == largeFlavor && a.Status.Pending == nil && a.Status.Overtaken == nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// quiet fails the test unless the Rds still has our values, and nobody contests them.
func (g *gitops) quiet(t *testing.T, db *world.DB) {
	t.Helper()
	rds, err := db.Rds(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	if rds.Spec.VolumeSize != 50 || rds.Spec.FlavorRef != largeFlavor {
		t.Errorf("%s: the Rds requests %d GB and %s", db.Name, rds.Spec.VolumeSize, rds.Spec.FlavorRef)
	}
	a, err := db.Autopilot(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	if meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionContested) {
		t.Errorf("%s: contested: %+v", db.Name, a.Status.Conditions)
	}
}

// contested waits for the condition, with the manager's name and what it did.
func (g *gitops) contested(t *testing.T, db *world.DB, manager, did string) {
	t.Helper()
	_, err := db.WaitAutopilot(world.Within(t), "contested by "+manager, func(a *v1alpha1.RdsAutopilot) bool {
		c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionContested)
		return c != nil && c.Status == "True" && strings.HasPrefix(c.Message, fmt.Sprintf("Field manager %q %s", manager, did))
	})
	if err != nil {
		t.Error(err)
	}
}
