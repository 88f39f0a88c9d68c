// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/yaml"
)

// kind is a resource of the API.
type kind struct {
	key        string // group/version/resource
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
	status     bool           // there is a status subresource
	custom     bool           // a custom resource, which has generations
	untracked  bool           // without managed fields
	schema     map[string]any // OpenAPI v3 of a custom resource

	fields, statusFields *managedfields.FieldManager
}

func builtInKinds() map[string]*kind {
	kinds := map[string]*kind{}
	for _, k := range []*kind{
		{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, resource: "namespaces"},
		{gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, resource: "configmaps", namespaced: true},
		{gvk: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, resource: "leases", namespaced: true},
		{gvk: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, resource: "events", namespaced: true},
	} {
		k.key = k.gvk.Group + "/" + k.gvk.Version + "/" + k.resource
		kinds[k.key] = k
	}
	return kinds
}

func (s *Server) readCRD(file string) error {
	data, err := os.ReadFile(file) //nolint:gosec // the file that a test names
	if err != nil {
		return fmt.Errorf("read a CRD: %w", err)
	}
	var crd struct {
		Spec struct {
			Group, Scope string
			Names        struct{ Kind, Plural string }
			Versions     []struct {
				Name         string
				Subresources map[string]any
				Schema       struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return fmt.Errorf("read CRD %s: %w", file, err)
	}
	for _, v := range crd.Spec.Versions {
		_, status := v.Subresources["status"]
		k := &kind{
			key: crd.Spec.Group + "/" + v.Name + "/" + crd.Spec.Names.Plural, gvk: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
			resource: crd.Spec.Names.Plural, namespaced: crd.Spec.Scope == "Namespaced", status: status, custom: true, schema: v.Schema.OpenAPIV3Schema,
		}
		s.kinds[k.key] = k
	}
	return nil
}

func (k *kind) prepare(converter managedfields.TypeConverter) (err error) {
	manager := func(subresource string) *managedfields.FieldManager {
		m, failed := managedfields.NewDefaultFieldManager(converter, untyped{}, untyped{}, untyped{}, k.gvk, k.gvk.GroupVersion(), subresource, nil)
		err = errors.Join(err, failed)
		return m
	}
	k.fields, k.statusFields = manager(""), manager("status")
	return err
}

// untyped describes the types to the library of managed fields: each has one version, and all are maps.
type untyped struct{}

func (untyped) Default(runtime.Object) {}

func (untyped) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

func (untyped) Convert(in, out, _ any) error { return fmt.Errorf("no conversion of %T to %T", in, out) }

func (untyped) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (untyped) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// withDefaults sets the missing fields that have a default in the schema.
func withDefaults(value any, of map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		properties, _ := of["properties"].(map[string]any)
		for name, property := range properties {
			s, _ := property.(map[string]any)
			if _, there := v[name]; !there {
				if d, has := s["default"]; has {
					v[name] = runtime.DeepCopyJSONValue(integers(d))
				}
			}
			if child, there := v[name]; there {
				withDefaults(child, s)
			}
		}
		if s, ok := of["additionalProperties"].(map[string]any); ok {
			for _, child := range v {
				withDefaults(child, s)
			}
		}
	case []any:
		if s, ok := of["items"].(map[string]any); ok {
			for _, child := range v {
				withDefaults(child, s)
			}
		}
	}
}

// prune drops the fields that the schema lacks.
func prune(value any, of map[string]any) {
	keep, _ := of["x-kubernetes-preserve-unknown-fields"].(bool)
	switch v := value.(type) {
	case map[string]any:
		if s, ok := of["additionalProperties"].(map[string]any); ok {
			for _, child := range v {
				prune(child, s)
			}
			return
		}
		properties, _ := of["properties"].(map[string]any)
		for name, child := range v {
			s, known := properties[name].(map[string]any)
			switch {
			case known:
				prune(child, s)
			case !keep:
				delete(v, name)
			}
		}
	case []any:
		if s, ok := of["items"].(map[string]any); ok {
			for _, child := range v {
				prune(child, s)
			}
		}
	}
}

// integers turns whole numbers, which YAML has decoded as floats, into int64.
func integers(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		for name, child := range v {
			v[name] = integers(child)
		}
	case []any:
		for i, child := range v {
			v[i] = integers(child)
		}
	}
	return value
}
