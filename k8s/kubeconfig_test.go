// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

const twoContexts = `{"apiVersion":"v1","kind":"Config","current-context":"a",
"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}},
{"name":"b","context":{"cluster":"d","user":"u","namespace":"shop"}}],
"clusters":[{"name":"c","cluster":{"server":"https://api.example"}},
{"name":"d","cluster":{"server":"https://other.example"}}],
"users":[{"name":"u","user":{"token":"t"}}]}`

// kubeconfigs returns a directory with kubeconfigs of these contents by file name. The test finds no other kubeconfig
// and is not in a pod.
func kubeconfigs(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "")
	home := clientcmd.RecommendedHomeFile // the library reads $HOME only once
	clientcmd.RecommendedHomeFile = filepath.Join(dir, "home", ".kube", "config")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConfigIsFoundAsKubectlDoes(t *testing.T) {
	file := filepath.Join(kubeconfigs(t, map[string]string{"config": twoContexts}), "config")
	for _, tc := range []struct{ kubeconfig, env, context, host, namespace string }{
		{file, "", "", "https://api.example", "default"},
		{file, "", "b", "https://other.example", "shop"},
		{"", file, "b", "https://other.example", "shop"},
		{"", file + ".missing:" + file, "b", "https://other.example", "shop"},
	} {
		t.Setenv("KUBECONFIG", tc.env)
		cfg, namespace, err := NewConfig(tc.kubeconfig, tc.context)
		if err != nil || cfg.Host != tc.host || namespace != tc.namespace {
			t.Errorf("%+v: %v, %q, %v", tc, cfg, namespace, err)
		}
	}
}

func TestKubeconfigErrorNamesTheFilesThatWereTried(t *testing.T) {
	dir := kubeconfigs(t, map[string]string{
		"good": twoContexts, "empty": "", "text": "no: [yaml",
		"dangling": strings.Replace(twoContexts, `"current-context":"a"`, `"current-context":"gone"`, 1),
		"no-ca":    strings.Replace(twoContexts, `"server":`, `"certificate-authority":"DIR/ca.pem","server":`, 1),
	})
	for name, tc := range map[string]struct {
		kubeconfig, env, context string
		want                     string // a text that ends with … is the beginning
	}{
		"--kubeconfig is missing":               {"DIR/none", "DIR/good", "", "DIR/none does not exist"},
		"both files of $KUBECONFIG are missing": {"", "DIR/a:DIR/b", "", "no kubeconfig at DIR/a or DIR/b ($KUBECONFIG), and not in a pod"},
		"nothing is set":                        {"", "", "", "DIR/home/.kube/config does not exist, $KUBECONFIG is not set, and this is not a pod"},
		"an empty file":                         {"DIR/empty", "", "", "kubeconfig DIR/empty names no API server, and this is not a pod"},
		"not YAML":                              {"DIR/text", "", "", `read kubeconfig: error loading config file "DIR/text": yaml: …`},
		"an unknown context":                    {"DIR/good", "", "nowhere", `context "nowhere" is not in DIR/good`},
		"a context without a file":              {"", "", "b", `context "b" is not in DIR/home/.kube/config (does not exist)`},
		"an unknown current context":            {"DIR/dangling", "", "", `context "gone" is not in DIR/dangling`},
		"no certificate authority":              {"DIR/no-ca", "", "", "kubeconfig DIR/no-ca: invalid configuration: …"},
	} {
		t.Run(name, func(t *testing.T) {
			in := strings.NewReplacer("DIR", dir)
			t.Setenv("KUBECONFIG", in.Replace(tc.env))
			_, _, err := NewConfig(in.Replace(tc.kubeconfig), tc.context)
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %v, want one line", err)
			}
			want, isOpen := strings.CutSuffix(in.Replace(tc.want), "…")
			if got := err.Error(); got != want && (!isOpen || !strings.HasPrefix(got, want)) {
				t.Errorf("error is\n%s\nwant\n%s", got, want)
			}
		})
	}
}
