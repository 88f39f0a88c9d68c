// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// rightsLimit is how long the API server may take to put new rights into force.
const rightsLimit = 5 * time.Minute

func crds(root string) []string {
	return []string{
		filepath.Join(root, "deploy", "crds", "rds.yaml"),
		filepath.Join(root, "deploy", "crds", "autopilot.otc.mcsps.de_rdsautopilots.yaml"),
	}
}

// startKube starts or joins an API server with our custom resources, and creates the service's namespace and rights.
func (w *World) startKube(ctx context.Context) error {
	start := w.startOwnCluster
	switch {
	case w.options.Cluster != nil:
		start = w.useCluster
	case w.options.InMemory:
		start = w.startMemory
	}
	if err := start(ctx); err != nil {
		return err
	}
	var err error
	if w.client, err = dynamic.NewForConfig(w.Kube.Config()); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if err := w.makeNamespace(ctx, w.home); err != nil {
		return err
	}
	if w.service, err = w.Kube.ServiceAccountConfig(ctx, w.home, serviceName); err != nil {
		return err
	}
	if !w.options.InMemory {
		if err := w.waitForRights(ctx); err != nil {
			return err
		}
	}
	return errors.Join(apiserver.WriteKubeconfig(w.Kubeconfig(), w.service), apiserver.WriteKubeconfig(w.AdminKubeconfig(), w.Kube.Config()))
}

// useCluster creates a namespace in a cluster that others use too.
func (w *World) useCluster(ctx context.Context) (err error) {
	cluster := w.options.Cluster
	if w.Namespace, err = cluster.NewNamespace(ctx, "world-"); err != nil {
		return err
	}
	w.Kube, w.home = cluster, w.Namespace
	return cluster.Grant(ctx, w.Namespace, filepath.Join(w.root, "deploy", "rbac.yaml"))
}

func (w *World) startOwnCluster(ctx context.Context) error {
	cluster, err := apiserver.Start(ctx, apiserver.Options{CRDs: crds(w.root)})
	if err != nil {
		return err
	}
	w.own, w.Kube, w.home, w.Namespace = cluster, cluster, serviceName, metav1.NamespaceDefault
	deploy := filepath.Join(w.root, "deploy")
	_, err = cluster.Apply(ctx, apiserver.ApplyOptions{}, filepath.Join(deploy, "namespace.yaml"), filepath.Join(deploy, "rbac.yaml"))
	return err
}

func (w *World) startMemory(ctx context.Context) (err error) {
	w.own, err = apiserver.InMemory(ctx, crds(w.root))
	w.Kube, w.home, w.Namespace = w.own, serviceName, metav1.NamespaceDefault
	return err
}

// Apply applies files with objects that only a real API server serves: admission policies, rights.
func (w *World) Apply(ctx context.Context, files ...string) error {
	cluster, ok := w.Kube.(*apiserver.Cluster)
	if !ok {
		return errors.New("apply files: this world has no real API server")
	}
	_, err := cluster.Apply(ctx, apiserver.ApplyOptions{}, files...)
	return err
}

// waitForRights waits until rbac.yaml is in force, because the API server applies it with a delay and the service would fail.
func (w *World) waitForRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rightsLimit)
	defer cancel()
	client, err := kubernetes.NewForConfig(w.service)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Group: "otc.mcsps.de", Resource: "rdss"},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: w.home},
		{Verb: "get", Resource: "namespaces", Namespace: metav1.NamespaceSystem, Name: metav1.NamespaceSystem},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		err := Eventually(ctx, "the rights of deploy/rbac.yaml are in force", func(ctx context.Context) (bool, error) {
			got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && got.Status.Allowed, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
