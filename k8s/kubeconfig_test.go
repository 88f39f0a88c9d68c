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
	dir := kubeconfigs(t, map[string]string{"good": twoContexts, "empty": "", "text": "no: [yaml"})
	for name, tc := range map[string]struct{ kubeconfig, env, context, want string }{
		"--kubeconfig is missing":               {"DIR/none", "DIR/good", "", "kubeconfig DIR/none: "},
		"both files of $KUBECONFIG are missing": {"", "DIR/a:DIR/b", "", "kubeconfig DIR/a or DIR/b: no API server is named there"},
		"nothing is set":                        {"", "", "", "kubeconfig DIR/home/.kube/config: no API server is named there"},
		"an empty file":                         {"DIR/empty", "", "", "kubeconfig DIR/empty: no API server is named there"},
		"not YAML":                              {"DIR/text", "", "", "kubeconfig DIR/text: "},
		"an unknown context":                    {"DIR/good", "", "nowhere", `kubeconfig DIR/good: context "nowhere" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			in := strings.NewReplacer("DIR", dir)
			t.Setenv("KUBECONFIG", in.Replace(tc.env))
			_, _, err := NewConfig(in.Replace(tc.kubeconfig), tc.context)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), in.Replace(tc.want)) {
				t.Errorf("error is %v, want one line that begins with %s", err, in.Replace(tc.want))
			}
		})
	}
}
