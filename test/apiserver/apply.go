// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// ApplyOptions of Apply. The zero value applies files as they are.
type ApplyOptions struct {
	// DryRun makes the API server check and default everything, and store nothing.
	DryRun bool
	// Namespace replaces the namespace of namespaced objects and of the subjects of bindings. Names of ClusterRoleBindings
	// get it as a suffix. If it is empty, nothing is replaced, and an object without a namespace gets the namespace default.
	Namespace string
}

// Apply applies files of one or more YAML documents in their order, server side, as admin. Unknown and duplicate
// fields are errors. It returns the objects as the server has them, and only after each CustomResourceDefinition among
// them is served.
func (c *Cluster) Apply(ctx context.Context, o ApplyOptions, files ...string) ([]*unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	var applied []*unstructured.Unstructured
	for _, file := range files {
		objects, err := Read(file)
		if err != nil {
			return applied, err
		}
		for _, object := range objects {
			result, err := c.applyObject(ctx, client, o, object)
			if err != nil {
				return applied, fmt.Errorf("apply %s %s of %s: %w", object.GetKind(), object.GetName(), file, err)
			}
			applied = append(applied, result)
		}
	}
	return applied, nil
}

func (c *Cluster) applyObject(ctx context.Context, client dynamic.Interface, o ApplyOptions, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapping, err := c.mapping(object)
	if err != nil {
		return nil, err
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.Namespace != "" {
			object.SetNamespace(o.Namespace)
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		resource = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	if o.Namespace != "" {
		moveBinding(object, o.Namespace)
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: "apiserver", Force: &force, FieldValidation: metav1.FieldValidationStrict}
	if o.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	result, err := resource.Patch(ctx, object.GetName(), "application/apply-patch+yaml", body, options)
	if err != nil {
		return nil, err
	}
	if object.GetKind() == "CustomResourceDefinition" && !o.DryRun {
		return result, c.waitServed(ctx, object)
	}
	return result, nil
}

// moveBinding lets a binding grant its rights to the accounts of a namespace, beside the bindings of other namespaces.
func moveBinding(object *unstructured.Unstructured, namespace string) {
	subjects, _ := object.Object["subjects"].([]any)
	for _, s := range subjects {
		if subject, ok := s.(map[string]any); ok && subject["namespace"] != nil {
			subject["namespace"] = namespace
		}
	}
	if object.GetKind() == "ClusterRoleBinding" {
		object.SetName(object.GetName() + "-" + namespace)
	}
}

// mapping asks the server for the resource of an object's kind. It asks each time, because an earlier document may have defined the
// kind.
func (c *Cluster) mapping(object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("discovery client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	kind := object.GroupVersionKind()
	return restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
}

// waitServed waits until the server serves a custom resource, which is later than the condition Established.
func (c *Cluster) waitServed(ctx context.Context, crd *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return fmt.Errorf("discovery client: %w", err)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		path := fmt.Sprintf("/apis/%s/%s/%s", group, version["name"], plural)
		err := poll(ctx, func(ctx context.Context) error {
			return client.RESTClient().Get().AbsPath(path).Param("limit", "1").Do(ctx).Error()
		})
		if err != nil {
			return fmt.Errorf("wait until it is served: %w", err)
		}
	}
	return nil
}

// Read returns the objects of a file of one or more YAML documents, in their order.
func Read(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var objects []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read manifests of %s: %w", file, err)
		}
		text, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("read manifests of %s: %w", file, err)
		}
		if string(text) == "null" { // nothing but comments
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("read manifests of %s: %w", file, err)
		}
		objects = append(objects, object)
	}
}
