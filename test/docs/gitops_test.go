// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"os"
	"path/filepath"
	"slices"
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

	kustomization = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: databases, namespace: flux-system}\n"
)

// TestGitOpsToolsLeaveExcludedFieldsAlone applies databases with the real tools as the page says. Each database needs more
// storage and a larger flavor afterwards. Then the tools apply their files again, unchanged and with another change.
func TestGitOpsToolsLeaveExcludedFieldsAlone(t *testing.T) {
	g := newGitOps(t)
	annotation := strings.TrimPrefix(g.block(t, "IfNotPresent"), "metadata:\n")
	present, ignored, ci := g.database(t, "present"), g.database(t, "ignored"), g.database(t, "ci")
	g.source(t, "present", "\nspec:", "\n"+annotation+"spec:")
	const ours = "  autopilot: true\n" // the operator drops it
	g.source(t, "ignored", ours, "")
	g.source(t, "ci")
	g.waitFor(t, "flux-apply plain.yaml present.yaml", "Rds/shop/present created")
	g.waitFor(t, "flux-apply ignore.yaml ignored.yaml", "Rds/shop/ignored created")
	create, apply, _ := strings.Cut(strings.ReplaceAll(g.block(t, "kubectl create"), "deploy/examples/rds.yaml", "ci.yaml"), "\n")
	g.must(t, create+"\n"+apply)
	g.grow(t, present, ignored, ci)

	again := func(db *world.DB, script, want string) {
		t.Helper()
		if out := g.must(t, script); !strings.Contains(out, want) {
			t.Errorf("%s: %s, want %q", script, out, want)
		}
		g.checkOurs(t, db)
	}
	again(present, "flux-apply plain.yaml present.yaml", "skipped")
	g.source(t, "present", "\nspec:", "\n"+annotation+"spec:", "backupkeepdays: 12", "backupkeepdays: 13")
	again(present, "flux-apply plain.yaml present.yaml", "skipped")

	again(ignored, "flux-apply ignore.yaml ignored.yaml", "unchanged")
	g.source(t, "ignored", ours, "", "backupkeepdays: 12", "backupkeepdays: 13")
	again(ignored, "flux-apply ignore.yaml ignored.yaml", "configured")
	again(ignored, "kubectl get rds ignored -o jsonpath={.spec.backupkeepdays}", "13")

	again(ci, apply, "serverside-applied")
	g.source(t, "ci", "backupkeepdays: 12", "backupkeepdays: 13")
	again(ci, apply, "serverside-applied")
	again(ci, "kubectl get rds ci -o jsonpath={.spec.backupkeepdays}", "13")
	// kubectl diff fails if there is a difference.
	again(ci, "kubectl diff --server-side --force-conflicts --field-manager=ci -f rds.yaml", "")
}

// TestFieldsThatAreDeletedInGit deletes both fields in files that were applied before. It also hands them over first.
func TestFieldsThatAreDeletedInGit(t *testing.T) {
	g := newGitOps(t)
	const (
		flux     = "flux-apply plain.yaml my-rds.yaml"
		ignoring = "flux-apply ignore.yaml my-rds.yaml"
		server   = "kubectl apply --server-side --force-conflicts --field-manager=ci -f my-rds.yaml"
		kept     = "100 " + smallFlavor
		defaults = "40 rds.mysql.c2.medium"
	)
	handOver := g.block(t, "--field-manager=size")
	with := []string{"  autopilot: true\n", "", "volumesize: 40", "volumesize: 100"}
	without := append(slices.Clone(with[:2]), "  volumesize: 40\n", "", "  flavorref: "+smallFlavor+"\n", "")
	for _, test := range []struct{ name, create, before, apply, want string }{
		{"Flux created it", flux, "", flux, defaults},
		{"Flux created it, and ignores both fields", ignoring, "", ignoring, kept},
		{"kubectl create, then Flux", "kubectl create -f my-rds.yaml", "", flux, defaults},
		{"kubectl create, then server-side apply", "kubectl create -f my-rds.yaml", "", server, kept},
		{"kubectl apply, then server-side apply", "kubectl apply -f my-rds.yaml", "", server, defaults},
		{"server-side apply created it", server, "", server, defaults},
		{"Flux, handed over", flux, handOver, flux, kept},
		{"server-side apply, handed over", server, handOver, server, kept},
		{"kubectl apply, then server-side apply, handed over", "kubectl apply -f my-rds.yaml", server + "\n" + handOver, server, kept},
		{"kubectl apply, then Flux, handed over", "kubectl apply -f my-rds.yaml", flux + "\n" + handOver, flux, kept},
	} {
		g.source(t, "my-rds", with...)
		g.must(t, test.create)
		g.must(t, test.before)
		g.source(t, "my-rds", without...)
		g.must(t, test.apply)
		got := g.must(t, "kubectl get rds my-rds -o jsonpath='{.spec.volumesize} {.spec.flavorref} {.spec.vpc}'")
		if got != test.want+" my-vpc" {
			t.Errorf("%s: %s, want %s my-vpc", test.name, got, test.want)
		}
		g.must(t, "kubectl delete rds my-rds")
	}
}

// gitops is a world with databases that tools apply from files.
type gitops struct{ *shell }

func newGitOps(t *testing.T) gitops {
	t.Helper()
	g := gitops{newShell(t, "--max-flavor-changes=10")}
	if err := os.Symlink(tool(t, "flux-apply"), filepath.Join(g.dir, "bin", "flux-apply")); err != nil {
		t.Fatal(err)
	}
	g.must(t, "kubectl create namespace shop && kubectl config set-context --current --namespace=shop")
	g.write(t, "plain.yaml", kustomization)
	g.write(t, "ignore.yaml", kustomization+g.block(t, "ignore:"))
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

// write writes a file into the folder in which commands run.
func (g gitops) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// source writes NAME.yaml, the file of an Rds in Git. It is that of deploy/examples with another name.
func (g gitops) source(t *testing.T, name string, replace ...string) {
	t.Helper()
	replace = append([]string{"name: my-rds", "name: " + name + "\n  namespace: shop"}, replace...)
	g.write(t, name+".yaml", strings.NewReplacer(replace...).Replace(read(t, "deploy/examples/rds.yaml")))
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

// grow lets the databases need more storage and CPU, and waits until the cloud has both.
func (g gitops) grow(t *testing.T, dbs ...*world.DB) {
	t.Helper()
	for _, db := range dbs {
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 31, CPUDemand: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, db := range dbs {
		_, err := db.WaitAutopilot(world.Within(t), "the cloud has both", func(a *v1alpha1.RdsAutopilot) bool {
			in := db.Instance()
			return in.VolumeGB == 50 && in.Flavor == largeFlavor && a.Status.Pending == nil && a.Status.Overtaken == nil
		})
		if err != nil {
			t.Fatal(err)
		}
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
