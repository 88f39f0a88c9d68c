// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// firstWithPolicies is the minor version of Kubernetes since which admissionregistration.k8s.io/v1 has ValidatingAdmissionPolicy.
const firstWithPolicies = 30

// serverVersion returns the version that the API server reports. It fails the test if another one was requested.
func serverVersion(t *testing.T, config *rest.Config) *version.Info {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := os.Getenv(apiserver.VersionVariable); want != "" && !strings.HasPrefix(info.GitVersion+".", "v"+want+".") {
		t.Fatalf("the API server is %s, want %s", info.GitVersion, want)
	}
	return info
}

func minor(t *testing.T, info *version.Info) int {
	t.Helper()
	n, err := strconv.Atoi(info.Minor)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestInstalledServiceGrowsADatabase is the smoke test of make test-versions: Helm installs the chart, and the binary with
// the rights of the chart arms a database and grows it after a signed alarm.
func TestInstalledServiceGrowsADatabase(t *testing.T) {
	helm := tool(t, "helm") // before the world starts
	r := newRelease(t)
	info := serverVersion(t, r.w.Kube.Config())
	t.Logf("Kubernetes %s", info)
	r.removeDefinition()
	if minor(t, info) < firstWithPolicies {
		text := refused(t, command(t, r.helmEnv(), helm, "--namespace", own, "install", own, "deploy/chart",
			"--values", r.values, "--set", "rbac.admissionPolicy=true"))
		if !strings.Contains(text, "rbac.admissionPolicy needs Kubernetes 1.30") {
			t.Errorf("with an admission policy, helm says %s", text)
		}
	}
	r.helm("install", own, "deploy/chart", "--values", r.values)
	service := r.serve()
	defer stop(t, service)
	db := database(t, r.w, "shop", "by-hand", true)
	if _, err := db.WaitAutopilot(within(t), "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	if err := db.SetWorkload(simcloud.Workload{UsedGB: 33}); err != nil {
		t.Fatal(err)
	}
	a, err := db.WaitAutopilot(within(t), "the change is completed", func(a *v1alpha1.RdsAutopilot) bool {
		return len(a.Status.Changes) > 0 && a.Status.Pending == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rds, err := db.Rds(within(t))
	if err != nil {
		t.Fatal(err)
	}
	change := a.Status.Changes[0]
	if change.Kind != v1alpha1.KindVolume || rds.Spec.VolumeSize != 50 || db.Instance().VolumeGB != 50 {
		t.Errorf("%+v; the Rds has %d GB, the instance %d GB, want 50", change, rds.Spec.VolumeSize, db.Instance().VolumeGB)
	}
	r.test(service)
}

// TestTheChartRequiresTheOldestVersionThatIsTested compares kubeVersion with the modules of the API servers.
func TestTheChartRequiresTheOldestVersionThatIsTested(t *testing.T) {
	text, err := os.ReadFile(chart + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var meta struct{ KubeVersion string }
	if err := yaml.Unmarshal(text, &meta); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(root + "/test/apiserver/servers*/go.mod")
	if err != nil || len(modules) < 3 {
		t.Fatalf("%q, %v: want three versions at least", modules, err)
	}
	oldest := 1000
	for _, module := range modules {
		text, err := os.ReadFile(module)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v1\.(\d+)\.`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s pins no version of Kubernetes", module)
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		oldest = min(oldest, n)
	}
	if want := ">=1." + strconv.Itoa(oldest) + ".0-0"; meta.KubeVersion != want {
		t.Errorf("kubeVersion is %q, want %q, the oldest version of make test-versions", meta.KubeVersion, want)
	}
}
