// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	smallFlavor = "rds.mysql.n1.medium.4"
	largeFlavor = "rds.mysql.n1.large.2"
)

// TestGitOpsCommandsLeaveExcludedFieldsAlone applies a database with kubectl as the page says. The database needs more storage and
// a larger flavor afterwards. Then the same commands apply its file again, unchanged and with another change.
func TestGitOpsCommandsLeaveExcludedFieldsAlone(t *testing.T) {
	g := newGitOps(t)
	db := g.database(t, "ci")
	g.source(t, "ci")
	create, apply, _ := strings.Cut(strings.ReplaceAll(g.block(t, "kubectl create"), "deploy/examples/rds.yaml", "ci.yaml"), "\n")
	g.must(t, create+"\n"+apply)
	g.grow(t, db)
	for _, keepDays := range []string{"12", "13"} {
		g.source(t, "ci", "backupkeepdays: 12", "backupkeepdays: "+keepDays)
		for script, want := range map[string]string{
			apply: "serverside-applied",
			"kubectl get rds ci -o jsonpath={.spec.backupkeepdays}": keepDays,
			// kubectl diff fails if there is a difference.
			"kubectl diff --server-side --force-conflicts --field-manager=ci -f rds.yaml": "",
		} {
			g.waitFor(t, script, want)
		}
		g.checkOurs(t, db)
	}
}

// gitops is a world with databases that tools apply from files.
type gitops struct{ *shell }

func newGitOps(t *testing.T) gitops {
	t.Helper()
	g := gitops{newShell(t, "--max-flavor-changes=10")}
	g.must(t, "kubectl create namespace shop && kubectl config set-context --current --namespace=shop")
	return g
}

// block returns the block of the page that contains the text.
func (g gitops) block(t *testing.T, text string) string {
	t.Helper()
	for _, b := range blocks(read(t, "docs/gitops.md")) {
		if strings.Contains(b.text, text) {
			return b.text
		}
	}
	t.Fatalf("the page has no block with %q", text)
	return ""
}

// source writes NAME.yaml, the file of an Rds in Git. It is that of deploy/examples with another name.
func (g gitops) source(t *testing.T, name string, replace ...string) {
	t.Helper()
	replace = append([]string{"name: my-rds", "name: " + name + "\n  namespace: shop"}, replace...)
	text := strings.NewReplacer(replace...).Replace(read(t, "deploy/examples/rds.yaml"))
	if err := os.WriteFile(filepath.Join(g.dir, name+".yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// database adds an instance, and the policy of its Rds. A tool creates the Rds.
func (g gitops) database(t *testing.T, name string) *world.DB {
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

// grow lets a database need more storage and CPU, and waits until the cloud has both.
func (g gitops) grow(t *testing.T, db *world.DB) {
	t.Helper()
	if err := db.SetWorkload(simcloud.Workload{UsedGB: 31, CPUDemand: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := db.WaitAutopilot(world.Within(t), "the cloud has both", func(a *v1alpha1.RdsAutopilot) bool {
		in := db.Instance()
		return in.VolumeGB == 50 && in.Flavor == largeFlavor && len(a.Status.PendingChanges()) == 0
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkOurs fails the test unless the Rds still has our values, and nobody contests them.
func (g gitops) checkOurs(t *testing.T, db *world.DB) {
	t.Helper()
	rds, err := db.Rds(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	a, err := db.Autopilot(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	contested := meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionContested)
	if rds.Spec.VolumeSize != 50 || rds.Spec.FlavorRef != largeFlavor || contested {
		t.Errorf("%s requests %d GB and %s, contested: %t", db.Name, rds.Spec.VolumeSize, rds.Spec.FlavorRef, contested)
	}
}
