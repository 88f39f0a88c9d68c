// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/internal/app"
)

// examinationOf returns an examination whose API server is handler.
func examinationOf(t *testing.T, handler http.HandlerFunc) *examination {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	access, err1 := authorizationv1client.NewForConfig(config)
	leases, err2 := coordinationv1client.NewForConfig(config)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	x := newExamination(Options{Options: app.Defaults()})
	x.LeaseNamespace = "ours"
	x.kube = &cluster{access: access, leases: leases}
	return x
}

// document returns the OpenAPI document of a CRD with a changed schema.
func document(t *testing.T, file string, change func(schema map[string]any)) any {
	t.Helper()
	text, err := os.ReadFile("../../deploy/crds/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	schema["x-kubernetes-group-version-kind"] = []any{map[string]any{"kind": crd.Spec.Names.Kind}}
	if change != nil {
		change(schema)
	}
	return map[string]any{"components": map[string]any{"schemas": map[string]any{"any.name": schema}}}
}

// without returns a function that removes a field from a schema. "[]" stands for the items of a list.
func without(path ...string) func(map[string]any) {
	return func(schema map[string]any) {
		for _, name := range path[:len(path)-1] {
			if name == "[]" {
				schema = schema["items"].(map[string]any)
				continue
			}
			schema = schema["properties"].(map[string]any)[name].(map[string]any)
		}
		delete(schema["properties"].(map[string]any), path[len(path)-1])
	}
}

func TestCheckCRDsNamesTheFieldsThatAnOldCRDLacks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		rds, rap func(map[string]any)
		status   int
		state    State
		text     string
	}{
		{"unchanged", nil, nil, 200, OK, "RdsAutopilot autopilot.otc.mcsps.de/v1alpha1: all fields"},
		{"the operator's CRD", without("spec", "autopilot"), nil, 200, Failed, "The CRD of Rds is older than this version: it has no spec.autopilot"},
		{"no kind Rds", func(s map[string]any) { delete(s, "x-kubernetes-group-version-kind") }, nil, 200, Failed, "The CRD of Rds is older"},
		{"our CRD of an earlier version", nil, without("status", "intake", "signingCertURL"), 200, Failed, "The CRD of RdsAutopilot is older than this version: it has no status.intake.signingCertURL"},
		{"a field of a list's items", nil, without("status", "changes", "[]", "outcome"), 200, Failed, "it has no status.changes.outcome"},
		{"a schema that is refused", nil, nil, 403, Unseen, "does not return its schema"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := examinationOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				doc := document(t, "rds.yaml", tc.rds)
				if strings.Contains(r.URL.Path, "autopilot.otc") {
					doc = document(t, "autopilot.otc.mcsps.de_rdsautopilots.yaml", tc.rap)
				}
				_ = json.NewEncoder(w).Encode(doc)
			})
			r := x.checkCRDs(t.Context())[0]
			if r.State != tc.state || !strings.Contains(r.Text, tc.text) || (r.State == Failed) != strings.Contains(r.Do, "kubectl apply -f deploy/crds") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestCheckRBACReviewsExactlyTheRightsOfTheManifests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var granted, asked []string
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var role struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Rules    []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
		}
		if err := yaml.Unmarshal([]byte(part), &role); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(role.Metadata.Name, "-view") || strings.HasSuffix(role.Metadata.Name, "-edit") {
			continue // of users
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				granted = append(granted, strings.Join([]string{verb, rule.APIGroups[0], rule.Resources[0], strings.Join(rule.ResourceNames, ""), role.Metadata.Namespace}, " "))
			}
		}
	}
	x := newExamination(Options{Options: app.Defaults()})
	x.LeaseNamespace = "rds-autopilot"
	for _, a := range x.access() {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		asked = append(asked, strings.Join([]string{a.Verb, a.Group, resource, a.Name, a.Namespace}, " "))
	}
	slices.Sort(granted)
	slices.Sort(asked)
	if !slices.Equal(granted, asked) {
		t.Errorf("the manifests grant\n%s\nand doctor reviews\n%s", strings.Join(granted, "\n"), strings.Join(asked, "\n"))
	}
}

func TestRefusedNamespaceIsReportedOnceAsItsOwn(t *testing.T) {
	t.Parallel()
	x := newExamination(Options{Options: app.Defaults()})
	x.Namespaces, x.kube = []string{"aaa", "shop"}, &cluster{refused: []string{"aaa"}}
	if r := x.checkKubernetes(t.Context())[0]; r.State != Warning || !strings.Contains(r.Text, "aaa") || !strings.Contains(r.Do, "--watch-namespaces") {
		t.Errorf("%+v", r)
	}
	asked := map[string]bool{}
	for _, a := range x.access() {
		asked[a.Verb+" "+a.Resource+" "+a.Namespace] = true
	}
	if asked["patch rdss aaa"] || !asked["patch rdss shop"] || !asked["patch rdsautopilots "] || asked["patch rdss "] {
		t.Errorf("doctor reviews %v", asked)
	}
}

func TestCheckRBACNamesTheMissingRights(t *testing.T) {
	t.Parallel()
	x := examinationOf(t, func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Verb, Resource, Subresource string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		a := review.Spec.ResourceAttributes
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"status": map[string]any{"allowed": a.Subresource != "status" && (a.Resource != "leases" || a.Verb != "update")},
		})
	})
	r := x.checkRBAC(t.Context())[0]
	if r.State != Failed || r.Text != "Not allowed: patch rdsautopilots/status, update leases in kube-system, update leases in ours" || !strings.Contains(r.Do, "deploy/rbac.yaml") {
		t.Errorf("%+v", r)
	}
}
