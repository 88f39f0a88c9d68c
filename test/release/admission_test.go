// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
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

// TestAdmissionPolicyLimitsTheServiceToTwoFields tries with the rights of the service what RBAC cannot forbid.
func TestAdmissionPolicyLimitsTheServiceToTwoFields(t *testing.T) {
	level.Long(t)
	cluster := shared.Cluster(t)
	if version := serverVersion(t, cluster.Config()); minor(t, version) < firstWithPolicies {
		t.Skipf("%s has no admission policies", version)
	}
	namespace := cluster.Namespace(t)
	rendered := run(t, command(t, nil, tool(t, "helm"), "template", own, "deploy/chart", "--namespace", namespace,
		"--show-only", "templates/rbac.yaml", "--show-only", "templates/admissionpolicy.yaml",
		"--set", "publicURL=https://a.example.com/smn,rbac.admissionPolicy=true,watchNamespaces={"+namespace+"}"))
	if _, err := cluster.Apply(within(t), apiserver.ApplyOptions{}, write(t, "rights.yaml", rendered)); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.ServiceAccountConfig(within(t), namespace, own)
	if err != nil {
		t.Fatal(err)
	}
	waitAllowed(t, config, namespace, right{"patch", otcv1.Group, otcv1.Resource})
	service, err1 := dynamic.NewForConfig(config)
	person, err2 := dynamic.NewForConfig(cluster.Config())
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	resource := otcv1.GroupVersion().WithResource(otcv1.Resource)
	const name = "my-rds"
	_, err = person.Resource(resource).Namespace(namespace).Create(within(t), &unstructured.Unstructured{Object: map[string]any{
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
		_, err := by.Resource(resource).Namespace(namespace).Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{FieldManager: own})
		return err
	}
	const denied = "rds-autopilot may change"
	err = world.Eventually(within(t), "the policy is in force", func(ctx context.Context) (bool, error) {
		err := patch(ctx, service, `{"metadata":{"labels":{"team":"none"}}}`)
		return err != nil && strings.Contains(err.Error(), denied), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, allowed := range map[string]string{
		"the size":   `[{"op":"test","path":"/spec/volumesize","value":40},{"op":"replace","path":"/spec/volumesize","value":50}]`,
		"the flavor": `[{"op":"replace","path":"/spec/flavorref","value":"rds.mysql.c2.large"}]`,
		"no field":   `{}`,
	} {
		if err := patch(within(t), service, allowed); err != nil {
			t.Errorf("the service changes %s: %v", what, err)
		}
	}
	for what, forbidden := range map[string]string{
		"the password":             `{"spec":{"password":"a-longer-secret"}}`,
		"the size and a user":      `{"spec":{"volumesize":60,"users":[{"name":"intruder"}]}}`,
		"a field that was not set": `{"spec":{"endpoint":"https://intruder.example.com"}}`,
		"a field that is removed":  `{"spec":{"password":null}}`,
		"the instance":             `{"status":{"id":"another"}}`,
		"the whole status":         `{"status":null}`,
		"a label":                  `{"metadata":{"labels":{"more":"yes"}}}`,
		"the labels":               `{"metadata":{"labels":null}}`,
		"an annotation":            `{"metadata":{"annotations":{"a":"b"}}}`,
		"a finalizer":              `{"metadata":{"finalizers":["example.com/f"]}}`,
	} {
		if err := patch(within(t), service, forbidden); err == nil || !strings.Contains(err.Error(), denied) {
			t.Errorf("the service changes %s: %v, want it denied", what, err)
		}
		if err := patch(within(t), person, forbidden); what != "a finalizer" && err != nil {
			t.Errorf("a person changes %s: %v", what, err)
		}
	}
}
