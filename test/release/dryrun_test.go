// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

const dryRunVersion = "v9.8.7"

var dryRunCommit = strings.Repeat("c", 40)

// secureRegistry starts a registry with TLS on loopback and returns its address. The programs of this test trust it, so Helm needs
// no flag for plain HTTP.
func secureRegistry(t *testing.T) string {
	t.Helper()
	behind := &url.URL{Scheme: "http", Host: registry(t)}
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(front.Close)
	dir := t.TempDir()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	writeFile(t, dir+"/registry.pem", certificate)
	t.Setenv("SSL_CERT_DIR", dir) // in addition to the file of the system's authorities
	return front.Listener.Addr().String()
}

// publish runs the steps of the release workflow that publish image, files and chart, with a registry of this machine. The other
// steps need GitHub or its identity.
func publish(t *testing.T, at string) {
	t.Helper()
	outputs := tempFile(t, "outputs", "")
	values := map[string]string{} // of expressions such as steps.image.outputs.digest
	fill := func(text string) string {
		return regexp.MustCompile(`\$\{\{ (\S+) \}\}`).ReplaceAllStringFunc(text, func(expression string) string {
			value, ok := values[strings.Trim(expression, "${} ")]
			if !ok {
				t.Fatalf("the workflow uses %s, which no step before has set", expression)
			}
			return value
		})
	}
	var done []string
	publishing := []string{"Image", "Files", "Chart"}
	for _, step := range readWorkflow(t, ".github/workflows/release.yml").Jobs["release"].Steps {
		if !slices.Contains(publishing, step.Name) {
			continue
		}
		done = append(done, step.Name)
		env := []string{
			"REGISTRY=" + at, "VERSION=" + dryRunVersion, "COMMIT=" + dryRunCommit, "GITHUB_OUTPUT=" + outputs,
			"KO_DEFAULTBASEIMAGE=" + at + "/base", "HELM_CONFIG_HOME=" + t.TempDir(), "HELM_CACHE_HOME=" + t.TempDir(),
		}
		for name, value := range step.Env {
			env = append(env, name+"="+fill(value))
		}
		run(t, command(t, env, "bash", "-eo", "pipefail", "-c", fill(step.Run)))
		for line := range strings.Lines(string(read(t, outputs))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values["steps."+step.ID+".outputs."+name] = value
		}
		writeFile(t, outputs, nil)
	}
	if !slices.Equal(done, publishing) {
		t.Fatalf("the workflow has the steps %q, want %q", done, publishing)
	}
}

// releaseInstall returns the block of the section From a release in docs/operations.md that contains a text. It has the version, the registry
// and the release files of the dry run.
func releaseInstall(t *testing.T, text, at, files string) string {
	t.Helper()
	_, section, _ := strings.Cut(string(read(t, root+"/docs/operations.md")), "\n### From a release\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		if strings.Contains(m[1], text) {
			return strings.NewReplacer(
				"oci://ghcr.io/mcsps/", "oci://"+at+"/",
				"https://github.com/mcsps/rds-autopilot/releases/download/v0.1.0", files,
				"--version 0.1.0", "--version "+strings.TrimPrefix(dryRunVersion, "v"),
			).Replace(m[1])
		}
	}
	t.Fatalf("docs/operations.md has no block of a release with %q", text)
	return ""
}

// TestTheReleaseIsInstalledWithoutAClone runs the release workflow as far as it needs no GitHub, and checks what it has published.
// Then it runs the commands of docs/operations.md.
func TestTheReleaseIsInstalledWithoutAClone(t *testing.T) {
	for _, name := range []string{"ko", "crane", "helm", "kubectl"} {
		tool(t, name)
	}
	at := secureRegistry(t)
	emptyBase(t, at)
	dist := filepath.Join(root, "dist")
	t.Cleanup(func() { _ = os.RemoveAll(dist) })
	publish(t, at)
	files := httptest.NewServer(http.FileServer(http.Dir(dist)))
	t.Cleanup(files.Close)

	digest := strings.TrimSpace(run(t, command(t, nil, tool(t, "crane"), "digest", at+"/rds-autopilot:"+dryRunVersion)))
	image := at + "/rds-autopilot:" + dryRunVersion + "@" + digest
	checkImage(t, at+"/rds-autopilot", dryRunVersion, dryRunCommit)
	checkFiles(t, dist, dryRunVersion, at+"/rds-autopilot", digest)
	t.Run("the documented commands", func(t *testing.T) {
		for name, text := range map[string]string{"helm": "helm install", "kubectl": "kubectl apply -f -"} {
			t.Run(name, func(t *testing.T) {
				cluster := apiserver.Own(t, apiserver.Options{})
				path := filepath.Dir(tool(t, "kubectl")) + ":" + os.Getenv("PATH")
				env := []string{"KUBECONFIG=" + cluster.Kubeconfig(), "HOME=" + t.TempDir(), "PATH=" + path}
				script := releaseInstall(t, "namespace.yaml", at, files.URL) + releaseInstall(t, text, at, files.URL) +
					"\nkubectl -n rds-autopilot get deployment,ingress -o yaml"
				got := run(t, command(t, env, "bash", "-euo", "pipefail", "-c", script))
				for _, want := range []string{"image: " + image, "value: https://autopilot.example.com/smn", "host: autopilot.example.com"} {
					if !strings.Contains(got, want+"\n") || strings.Contains(got, "rds-autopilot.example.com") {
						t.Errorf("the objects lack %q, or have the host of the file:\n%s", want, got)
					}
				}
			})
		}
	})
}

func TestActionlintPasses(t *testing.T) {
	run(t, command(t, nil, tool(t, "actionlint")))
}

// workflow is the part of a workflow that the tests check.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			ID, Name, Run string
			Env           map[string]string
		}
	}
}

func readWorkflow(t *testing.T, path string) (w workflow) {
	t.Helper()
	must(t, yaml.Unmarshal(read(t, root+"/"+path), &w))
	return w
}
