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

	"github.com/mcsps/rds-autopilot/test/apiserver"
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

// TestTheChartRequiresTheOldestVersionThatIsTested compares kubeVersion with the modules of the API servers.
func TestTheChartRequiresTheOldestVersionThatIsTested(t *testing.T) {
	var meta struct{ KubeVersion string }
	if err := yaml.Unmarshal(read(t, chart+"/Chart.yaml"), &meta); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(root + "/test/apiserver/servers*/go.mod")
	if err != nil || len(modules) < 3 {
		t.Fatalf("%q, %v: want three versions at least", modules, err)
	}
	oldest := 1000
	for _, module := range modules {
		m := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v1\.(\d+)\.`).FindSubmatch(read(t, module))
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
