package doctor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/app"
)

// serving is an examination of an API server that answers by itself.
func serving(t *testing.T, handler http.HandlerFunc) *examination {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	access, err1 := authorizationv1client.NewForConfig(config)
	leases, err2 := coordinationv1client.NewForConfig(config)
	objects, err3 := dynamic.NewForConfig(config)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	x := newExamination(Options{Options: app.Defaults()})
	x.LeaseNamespace = "ours"
	x.kube = &cluster{access: access, leases: leases, objects: objects}
	return x
}

// document is a schema as the API server shows it, with one field in each of two levels.
func document(kind, outer, inner string) any {
	leaf := map[string]any{"type": "array"}
	middle := map[string]any{"properties": map[string]any{inner: leaf}}
	top := map[string]any{
		"x-kubernetes-group-version-kind": []any{map[string]any{"kind": kind}},
		"properties":                      map[string]any{outer: middle},
	}
	if kind == "RdsAutopilot" {
		top["properties"] = map[string]any{outer: map[string]any{"properties": map[string]any{"intake": middle}}}
	}
	return map[string]any{"components": map[string]any{"schemas": map[string]any{"any.name": top}}}
}

func TestAnOldCRDIsNamedWithWhatItLacks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, rds, rap string
		status         int
		state          State
		says           string
	}{
		{"as they are", "autopilot", "captured", 200, OK, ""},
		{"the operator's own", "volumesize", "captured", 200, Failed, "The CRD of Rds is older than this version: it has no spec.autopilot"},
		{"ours of an earlier version", "autopilot", "signals", 200, Failed, "The CRD of RdsAutopilot is older than this version: it has no status.intake.captured"},
		{"no schema is shown", "", "", 403, Unseen, "does not show its schema"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := serving(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				doc := document("Rds", "spec", tc.rds)
				if strings.Contains(r.URL.Path, "autopilot.otc") {
					doc = document("RdsAutopilot", "status", tc.rap)
				}
				_ = json.NewEncoder(w).Encode(doc)
			})
			r := x.checkCRDs(t.Context())[0]
			if r.State != tc.state || !strings.Contains(r.Text, tc.says) || (r.State == Failed) != strings.Contains(r.Do, "kubectl apply -f deploy/crds") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestWhatWeMayNotDoIsNamed(t *testing.T) {
	t.Parallel()
	x := serving(t, func(w http.ResponseWriter, r *http.Request) {
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
	if r.State != Failed || r.Text != "Not allowed: patch rdsautopilots/status, update leases in ours" || !strings.Contains(r.Do, "deploy/rbac.yaml") {
		t.Errorf("%+v", r)
	}
}
