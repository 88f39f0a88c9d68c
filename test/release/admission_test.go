// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestAdmissionPolicyLimitsTheServiceToTwoFields patches with the rights of the service what RBAC cannot forbid.
func TestAdmissionPolicyLimitsTheServiceToTwoFields(t *testing.T) {
	level.Long(t)
	cluster := shared.Cluster(t)
	if minor := kubeMinor(t, cluster.Config()); minor < firstWithPolicies {
		t.Skipf("Kubernetes 1.%d has no admission policies", minor)
	}
	namespace := cluster.Namespace(t)
	rendered := templateIn(t, namespace, "--show-only", "templates/rbac.yaml", "--show-only", "templates/admissionpolicy.yaml",
		"--set", "publicURL=https://a.example.com/smn,rbac.admissionPolicy=true,watchNamespaces={"+namespace+"}")
	if _, err := cluster.Apply(world.Within(t), apiserver.ApplyOptions{}, tempFile(t, "rights.yaml", rendered)); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.ServiceAccountConfig(world.Within(t), namespace, releaseName)
	if err != nil {
		t.Fatal(err)
	}
	_, service := clients(t, config)
	_, person := clients(t, cluster.Config())
	resource := otcv1.GroupVersion().WithResource(otcv1.Resource)
	const name = "my-rds"
	_, err = person.Resource(resource).Namespace(namespace).Create(world.Within(t), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{"team": "shop"}},
		"spec":     map[string]any{"volumesize": 40, "flavorref": "rds.mysql.c2.medium", "password": "a-long-secret", "users": []any{map[string]any{"name": "app"}}},
		"status":   map[string]any{"id": "an-instance"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(ctx context.Context, by dynamic.Interface, patch string) error {
		kind := types.MergePatchType
		if strings.HasPrefix(patch, "[") {
			kind = types.JSONPatchType
		}
		_, err := by.Resource(resource).Namespace(namespace).Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{FieldManager: releaseName})
		return err
	}
	const denied = "rds-autopilot may change"
	attempts := 0
	waitUntil(t, "the policy is in force", func(ctx context.Context) (bool, error) {
		attempts++ // a patch that changes nothing is always allowed
		err := patch(ctx, service, fmt.Sprintf(`{"metadata":{"labels":{"team":"%d"}}}`, attempts))
		return err != nil && strings.Contains(err.Error(), denied), nil // until then RBAC may refuse it
	})
	for name, c := range map[string]struct {
		patch   string
		allowed bool
	}{
		"the size":                 {`[{"op":"replace","path":"/spec/volumesize","value":50}]`, true},
		"the flavor":               {`[{"op":"replace","path":"/spec/flavorref","value":"rds.mysql.c2.large"}]`, true},
		"no field":                 {`{}`, true},
		"the password":             {`{"spec":{"password":"a-longer-secret"}}`, false},
		"the size and a user":      {`{"spec":{"volumesize":60,"users":[{"name":"intruder"}]}}`, false},
		"a field that was not set": {`{"spec":{"endpoint":"https://intruder.example.com"}}`, false},
		"a field that is removed":  {`{"spec":{"password":null}}`, false},
		"the instance":             {`{"status":{"id":"another"}}`, false},
		"the whole status":         {`{"status":null}`, false},
		"a label":                  {`{"metadata":{"labels":{"more":"yes"}}}`, false},
		"the labels":               {`{"metadata":{"labels":null}}`, false},
		"an annotation":            {`{"metadata":{"annotations":{"a":"b"}}}`, false},
		"a finalizer":              {`{"metadata":{"finalizers":["example.com/f"]}}`, false},
	} {
		err := patch(world.Within(t), service, c.patch)
		if allowed := err == nil; allowed != c.allowed || !allowed && !strings.Contains(err.Error(), denied) {
			t.Errorf("the service changes %s: %v, want it allowed: %t", name, err, c.allowed)
		}
		if err := patch(world.Within(t), person, c.patch); name != "a finalizer" && err != nil {
			t.Errorf("a person changes %s: %v", name, err)
		}
	}
}
