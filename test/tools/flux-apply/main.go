// SPDX-License-Identifier: Apache-2.0

// Command flux-apply applies a file as Flux's kustomize-controller does, with Flux's own library. Drift detection, ignore
// rules, annotations and the cleanup of other field managers are those of internal/controller/kustomization_controller.go
// in github.com/fluxcd/kustomize-controller. It prints what Flux reports for each object: created, configured, unchanged or
// skipped.
//
//	flux-apply KUSTOMIZATION OBJECTS
//
// KUSTOMIZATION is a file with a Kustomization, of which it uses name, namespace and spec.ignore. OBJECTS is a file with the
// objects of the source.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// controller is the name of the controller, and so its field manager.
const controller = "kustomize-controller"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "flux-apply:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want two files: a Kustomization, and the objects of its source")
	}
	kustomization, objects, err := read(args[0], args[1])
	if err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	kube, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	group := kustomizev1.GroupVersion.Group
	manager := ssa.NewResourceManager(kube, nil, ssa.Owner{Field: controller, Group: group})
	manager.SetOwnerLabels(objects, kustomization.Name, kustomization.Namespace)
	changes, err := manager.ApplyAllStaged(ctx, objects, options(group, kustomization.Spec.Ignore))
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for _, change := range changes.Entries {
		fmt.Fprintln(out, change.String())
	}
	return nil
}

func read(kustomizationFile, objectsFile string) (*kustomizev1.Kustomization, []*unstructured.Unstructured, error) {
	text, err := os.ReadFile(kustomizationFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read the Kustomization: %w", err)
	}
	kustomization := &kustomizev1.Kustomization{}
	if err := yaml.UnmarshalStrict(text, kustomization); err != nil {
		return nil, nil, fmt.Errorf("read the Kustomization: %w", err)
	}
	file, err := os.Open(objectsFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read the objects: %w", err)
	}
	defer file.Close()
	objects, err := utils.ReadObjects(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the objects: %w", err)
	}
	if err := normalize.UnstructuredList(objects); err != nil {
		return nil, nil, fmt.Errorf("read the objects: %w", err)
	}
	return kustomization, objects, nil
}

// options returns the options of the controller with its default flags.
func options(group string, ignore []kustomizev1.IgnoreRule) ssa.ApplyOptions {
	o := ssa.DefaultApplyOptions()
	o.ExclusionSelector = map[string]string{
		group + "/reconcile": kustomizev1.DisabledValue,
		group + "/ssa":       kustomizev1.IgnoreValue,
	}
	o.IfNotPresentSelector = map[string]string{group + "/ssa": kustomizev1.IfNotPresentValue}
	o.ForceSelector = map[string]string{group + "/force": kustomizev1.EnabledValue}
	for _, rule := range ignore {
		r := jsondiff.IgnoreRule{Paths: rule.Paths}
		if t := rule.Target; t != nil {
			r.Selector = &jsondiff.Selector{
				Group: t.Group, Version: t.Version, Kind: t.Kind, Name: t.Name, Namespace: t.Namespace,
				AnnotationSelector: t.AnnotationSelector, LabelSelector: t.LabelSelector,
			}
		}
		o.DriftIgnoreRules = append(o.DriftIgnoreRules, r)
	}
	o.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation, group + "/checksum", "fluxcd.io/sync-checksum"},
		Labels:      []string{"fluxcd.io/sync-gc-mark"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: controller, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{group + "/ssa": kustomizev1.MergeValue},
	}
	return o
}
