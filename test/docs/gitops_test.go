// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"slices"
	"strings"
	"testing"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestGitOpsToolsLeaveExcludedFieldsAlone applies databases with the real tools as the page says. Each database needs more
// storage and a larger flavor afterwards. Then the tools apply their files again, unchanged and with another change.
func TestGitOpsToolsLeaveExcludedFieldsAlone(t *testing.T) {
	g := newGitOps(t)
	g.write(t, "plain.yaml", kustomization)
	g.write(t, "ignore.yaml", kustomization+g.block(t, "ignore:"))
	annotation := strings.TrimPrefix(g.block(t, "IfNotPresent"), "metadata:\n")

	present, ignored, ci := g.database(t, "present"), g.database(t, "ignored"), g.database(t, "ci")
	g.source(t, "present", "\nspec:", "\n"+annotation+"spec:")
	const ours = "  autopilot: true\n" // the operator drops it
	g.source(t, "ignored", ours, "")
	g.source(t, "ci")
	g.says(t, "flux-apply plain.yaml present.yaml", "Rds/shop/present created")
	g.says(t, "flux-apply ignore.yaml ignored.yaml", "Rds/shop/ignored created")
	create, apply, _ := strings.Cut(strings.ReplaceAll(g.block(t, "kubectl create"), "deploy/examples/rds.yaml", "ci.yaml"), "\n")
	g.must(t, create)
	g.must(t, apply)
	g.grow(t, present, ignored, ci)

	again := func(t *testing.T, db *world.DB, script, want string) {
		t.Helper()
		if out := g.must(t, script); !strings.Contains(out, want) {
			t.Errorf("%s: %s, want %q", script, out, want)
		}
		g.quiet(t, db)
	}
	t.Run("Flux with IfNotPresent", func(t *testing.T) {
		again(t, present, "flux-apply plain.yaml present.yaml", "skipped")
		g.source(t, "present", "\nspec:", "\n"+annotation+"spec:", "backupkeepdays: 12", "backupkeepdays: 13")
		again(t, present, "flux-apply plain.yaml present.yaml", "skipped")
	})
	t.Run("Flux with spec.ignore", func(t *testing.T) {
		again(t, ignored, "flux-apply ignore.yaml ignored.yaml", "unchanged")
		g.source(t, "ignored", ours, "", "backupkeepdays: 12", "backupkeepdays: 13")
		again(t, ignored, "flux-apply ignore.yaml ignored.yaml", "configured")
		again(t, ignored, "kubectl get rds ignored -o jsonpath={.spec.backupkeepdays}", "13")
		again(t, ignored, "flux-apply ignore.yaml ignored.yaml", "unchanged")
	})
	t.Run("kubectl", func(t *testing.T) {
		diff := "kubectl diff --server-side --force-conflicts --field-manager=ci -f rds.yaml" // it fails if there is a difference
		again(t, ci, apply, "serverside-applied")
		again(t, ci, diff, "")
		g.source(t, "ci", "backupkeepdays: 12", "backupkeepdays: 13")
		again(t, ci, apply, "serverside-applied")
		again(t, ci, "kubectl get rds ci -o jsonpath={.spec.backupkeepdays}", "13")
		again(t, ci, diff, "")
	})
}

// TestGitOpsToolsThatResetAreNamed applies databases as the page says not to. The tool resets both fields.
func TestGitOpsToolsThatResetAreNamed(t *testing.T) {
	g := newGitOps(t)
	g.write(t, "plain.yaml", kustomization)
	flux, ci := g.database(t, "flux"), g.database(t, "ci")
	g.source(t, "flux")
	g.source(t, "ci")
	apply := "kubectl apply --server-side --field-manager=ci -f ci.yaml"
	g.says(t, "flux-apply plain.yaml flux.yaml", "Rds/shop/flux created")
	g.must(t, apply)
	g.grow(t, flux, ci)

	out, err := g.sh(t.Context(), apply)
	if err == nil || !strings.Contains(out, `conflicts with "rds-autopilot"`) {
		t.Errorf("without --force-conflicts: %v %s", err, out)
	}
	g.quiet(t, ci)

	// No alarm is in force, so nothing but the condition can report it. The operator would cause one with the smaller flavor.
	g.world.Operator.Pause()
	g.must(t, "flux-apply plain.yaml flux.yaml")
	g.must(t, apply+" --force-conflicts")
	g.contested(t, flux, "kustomize-controller", "replaced flavor "+largeFlavor+" by "+smallFlavor)
	g.contested(t, ci, "ci", "replaced flavor "+largeFlavor+" by "+smallFlavor)

	// The alarm of the storage comes, and the tools reset the size before the cloud has it.
	for _, db := range []*world.DB{flux, ci} {
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 42}); err != nil {
			t.Fatal(err)
		}
		g.requests(t, db, 60, smallFlavor)
	}
	g.must(t, "flux-apply plain.yaml flux.yaml")
	g.must(t, apply+" --force-conflicts")
	g.contested(t, flux, "kustomize-controller", "reset the size from 60 to 40 GB")
	g.contested(t, ci, "ci", "reset the size from 60 to 40 GB")
}

// TestFieldsThatAreDeletedInGit deletes both fields in files that were applied before. It also hands them over first.
func TestFieldsThatAreDeletedInGit(t *testing.T) {
	g := newGitOps(t)
	g.write(t, "plain.yaml", kustomization)
	g.write(t, "ignore.yaml", kustomization+g.block(t, "ignore:"))
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
