// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// complete returns what the shell offers for a line, and cobra's directive. The last word is the one being typed.
func complete(t *testing.T, env func(string) string, words ...string) (offered []string, directive string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"__complete"}, words...), env, nil, &out, &errs)
	if code != exitOK || strings.Count(errs.String(), "\n") != 1 || !strings.HasPrefix(errs.String(), "Completion ended") {
		t.Errorf("%v: exit code %d, %q", words, code, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

// kubeconfig returns a file with the access of config in the context "first", and in the context "second", whose
// namespace is the given one.
func kubeconfig(t *testing.T, config *rest.Config, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := apiserver.WriteKubeconfig(file, config); err != nil {
		t.Fatal(err)
	}
	content, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first := content.Contexts[content.CurrentContext]
	second := first.DeepCopy()
	second.Namespace = namespace
	content.Contexts = map[string]*clientcmdapi.Context{"first": first, "second": second}
	content.CurrentContext = "first"
	if err := clientcmd.WriteToFile(*content, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestShellCompletesNamesFromTheCluster(t *testing.T) {
	t.Parallel()
	kube := shared.Cluster(t)
	admin, err := dynamic.NewForConfig(kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	here, there := kube.Namespace(t), kube.Namespace(t)
	f := &planWorld{t: t, kube: kube, admin: admin, here: here, there: there}
	spec := map[string]any{
		"datastoretype": "MySQL", "datastoreversion": "8.0", "flavorref": "rds.mysql.n1.large.4", "volumesize": int64(40),
		"volumetype": "CLOUDSSD",
	}
	f.rds(here, "orders", spec, "")
	f.rds(here, "reports", spec, "")
	f.rds(there, "billing", spec, "")
	for _, name := range []string{"orders", "terraform"} { // one beside its Rds, one without an Rds
		_, err := admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(here).Create(t.Context(),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion().String(), "kind": "RdsAutopilot", "metadata": map[string]any{"name": name},
			}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	wrong := environment("RDS_AUTOPILOT_MODE=x")
	all, reader := kubeconfig(t, kube.Config(), here), f.readers()
	fromEnv := environment("RDS_AUTOPILOT_KUBECONFIG="+all, "RDS_AUTOPILOT_CONTEXT=second")

	for name, tc := range map[string]struct {
		env   func(string) string
		words string // the typed part of the last word stands behind the bar
		want  string
	}{
		"plan":                             {words: "plan --kubeconfig ALL -n HERE |", want: "orders reports terraform"},
		"a prefix":                         {words: "plan --kubeconfig ALL -n HERE |re", want: "reports"},
		"another namespace":                {words: "plan --kubeconfig ALL --namespace=THERE |", want: "billing"},
		"the namespace of the context":     {words: "plan --kubeconfig ALL --context second |o", want: "orders"},
		"-n wins over the context's":       {words: "plan --kubeconfig ALL --context second -n THERE |", want: "billing"},
		"the environment":                  {env: fromEnv, words: "plan |t", want: "terraform"},
		"a flag wins over the environment": {env: fromEnv, words: "plan --context first |t", want: ""},
		"doctor":                           {words: "doctor --kubeconfig ALL -n HERE |o", want: "orders"},
		"a second name":                    {words: "doctor --kubeconfig ALL -n HERE orders |", want: ""},
		"rights in one namespace":          {words: "plan --kubeconfig READER -n HERE |", want: "orders reports terraform"},
		"no rights in the namespace":       {words: "plan --kubeconfig READER -n THERE |", want: ""},
		"an unknown context":               {words: "plan --kubeconfig ALL --context third -n HERE |", want: ""},
		"a wrong variable":                 {env: wrong, words: "plan --kubeconfig ALL -n HERE |"},
		"namespaces":                       {words: "plan --kubeconfig ALL -n |HERE", want: "HERE"},
		"namespaces without the right":     {words: "plan --kubeconfig READER -n |", want: ""},
		"the lease's namespace":            {words: "serve --kubeconfig ALL --lease-namespace |HERE", want: "HERE"},
		"contexts":                         {words: "serve --kubeconfig ALL --context |", want: "first second"},
		"contexts with a prefix":           {env: fromEnv, words: "uninstall-check --context |s", want: "second"},
		"contexts without a kubeconfig":    {words: "plan --kubeconfig ALL.missing --context |", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := strings.NewReplacer("ALL", all, "READER", reader["here"], "HERE", here, "THERE", there)
			if tc.env == nil {
				tc.env = environment()
			}
			given, typed, _ := strings.Cut(in.Replace(tc.words), "|")
			got, directive := complete(t, tc.env, append(strings.Fields(given), typed)...)
			if want := strings.Fields(in.Replace(tc.want)); !slices.Equal(got, want) || directive != ":4" {
				t.Errorf("%v %s, want %v without files (:4)", got, directive, want)
			}
		})
	}
	t.Run("a list of namespaces", func(t *testing.T) {
		for _, command := range []string{"serve", "doctor", "uninstall-check"} {
			given := here + ","
			got, directive := complete(t, environment(), command, "--kubeconfig", all, "--watch-namespaces", given)
			if !slices.Contains(got, given+there) || slices.Contains(got, given+here) || directive != ":6" {
				t.Errorf("%s: %v %s, want %s without a space (:6)", command, got, directive, given+there)
			}
		}
	})
}

func TestCompletionWithoutTheCRDOfTheRdsOffersAutopilotsWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	limits := map[string]string{} // by path
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		limits[r.URL.Path] = r.URL.Query().Get("timeout")
		mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/namespaces/shop/"+v1alpha1.Resource) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList",`+
			`"items":[{"metadata":{"name":"db"}}]}`)
	}))
	t.Cleanup(server.Close)
	file := kubeconfig(t, &rest.Config{Host: server.URL}, "shop")
	got, _ := complete(t, environment(), "plan", "--kubeconfig", file, "--context", "second", "")
	if !slices.Equal(got, []string{"db"}) {
		t.Errorf("offered %v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(limits) != 2 {
		t.Errorf("requests: %v", limits)
	}
	for path, limit := range limits {
		if limit != "3s" {
			t.Errorf("%s has the timeout %q", path, limit)
		}
	}
}
