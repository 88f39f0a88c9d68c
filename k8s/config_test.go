// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

const twoContexts = `{"apiVersion":"v1","kind":"Config","current-context":"a",
"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}},
{"name":"b","context":{"cluster":"d","user":"u","namespace":"shop"}}],
"clusters":[{"name":"c","cluster":{"server":"https://api.example"}},
{"name":"d","cluster":{"server":"https://other.example"}}],
"users":[{"name":"u","user":{"token":"t"}}]}`

func TestKubeconfigOfAContextIsUsedAndAnErrorNamesTheFiles(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "good"), []byte(twoContexts), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ kubeconfig, env, context, want string }{
		{"DIR/good", "", "b", "https://other.example shop <nil>"},
		{"", "DIR/none:DIR/good", "", "https://api.example default <nil>"},
		{"DIR/none", "DIR/good", "", "kubeconfig DIR/none: "},
		{"", "DIR/a:DIR/b", "", "kubeconfig DIR/a or DIR/b: no API server is named there, and this is not a pod"},
	} {
		in := strings.NewReplacer("DIR", dir)
		t.Setenv("KUBECONFIG", in.Replace(tc.env))
		config, namespace, err := NewConfig(in.Replace(tc.kubeconfig), tc.context)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(config.Host, " ", namespace, " ", err)
		}
		if want := in.Replace(tc.want); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%+v: %s, want %s", tc, got, want)
		}
	}
}

// At a high verbosity client-go logs whole answers, and an Rds has passwords.
func TestLibraryLogHidesAnswers(t *testing.T) {
	for level, want := range map[zapcore.Level][]string{zap.DebugLevel: {"info"}, zapcore.Level(-10): {"info"}, zap.ErrorLevel: nil} {
		core, seen := observer.New(level)
		log := libraryLog(zap.New(core))
		log.Info("info")
		log.V(1).Info("detail")
		log.V(8).Info("body with a password")
		var got []string
		for _, e := range seen.All() {
			got = append(got, e.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log at %s (-want +got):\n%s", level, diff)
		}
	}
}
