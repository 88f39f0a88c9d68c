// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestServeWorksWithoutTheCRDOfTheRds runs with the shipped ServiceAccount and rights. Users of Terraform have no Rds.
func TestServeWorksWithoutTheCRDOfTheRds(t *testing.T) {
	t.Parallel()
	apiserver.NeedReal(t)
	w := shared.StartAlone(t, world.Options{NoRdsCRD: true})
	ctx := world.Within(t)

	refused, err := w.Run(ctx, w.ServeArgs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := refused.Lines()
	if last := lines[len(lines)-1].Raw; !strings.Contains(last, "kubectl apply -f deploy/crds") || !strings.Contains(last, "--allow-apply=Cloud") {
		t.Errorf("without --allow-apply=Cloud, it does not name both ways: %s", last)
	}

	p := w.MustServe(t, "--allow-apply", "Cloud", "--allowed-instances", "*/*")
	ready, err := http.Get(p.AdminURL + "/readyz") //nolint:noctx // on loopback
	if err != nil {
		t.Fatal(err)
	}
	_ = ready.Body.Close()
	if ready.StatusCode != http.StatusOK {
		t.Errorf("readyz answers %d", ready.StatusCode)
	}

	made := w.MustAdd(t, world.Database{Name: "terraform", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, NoRds: true})
	if err := made.CreateAutopilot(ctx, fmt.Sprintf(`{"apply":"Cloud","instanceID":%q}`, made.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := made.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	if err := made.SetWorkload(simcloud.Workload{UsedGB: 93}); err != nil {
		t.Fatal(err)
	}
	if _, err := made.WaitAutopilot(ctx, "it has grown", func(a *v1alpha1.RdsAutopilot) bool {
		return a.Status.Pending == nil && a.Status.Instance.VolumeGB > 100
	}); err != nil {
		t.Fatal(err)
	}

	if err := w.ApplyRdsCRD(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = p.WaitLine(ctx, "it watches Rds", func(l world.Line) bool { return strings.HasPrefix(l.Msg, "the CRD of the Rds is installed") })
	if err != nil {
		t.Fatal(err)
	}
	// The operator drops spec.autopilot within a second. The API server may refuse the first watch of a new kind for longer.
	db := w.MustAdd(t, world.Database{Name: "operated", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100})
	err = world.Eventually(ctx, "the service sees that autopilot is on", func(ctx context.Context) (bool, error) {
		if err := db.PatchRds(ctx, `{"spec":{"autopilot":true}}`); err != nil {
			return false, err
		}
		_, err := db.Autopilot(ctx)
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{"the CRD of the Rds is not installed", "the CRD of the Rds is installed"} {
		n := 0
		for _, l := range p.Lines() {
			if strings.HasPrefix(l.Msg, message) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the log says %d times, want once: %s", n, message)
		}
	}
}
