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
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/faults"
	"github.com/mcsps/rds-autopilot/internal/kubetest"
)

// rightsLimit is how long the API server may take to put new rights into force.
const rightsLimit = 30 * time.Second

// startKube starts the API server with our custom resources, and writes the service's access to a file.
func (w *World) startKube(ctx context.Context) error {
	deploy := filepath.Join(w.root, "deploy")
	var err error
	w.Kube, err = kubetest.Start(ctx, kubetest.Options{Progress: w.options.Progress, CRDs: []string{
		filepath.Join(deploy, "crds", "rds.yaml"),
		filepath.Join(deploy, "crds", "autopilot.otc.mcsps.de_rdsautopilots.yaml"),
	}})
	if err != nil {
		return err
	}
	if w.client, err = dynamic.NewForConfig(w.Kube.Config()); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	_, err = w.Kube.Apply(ctx, kubetest.ApplyOptions{}, filepath.Join(deploy, "namespace.yaml"), filepath.Join(deploy, "rbac.yaml"))
	if err != nil {
		return err
	}
	if w.service, err = w.Kube.ServiceAccountConfig(ctx, serviceName, serviceName); err != nil {
		return err
	}
	if err := waitForRights(ctx, w.service); err != nil {
		return err
	}
	return errors.Join(w.writeAccess(), kubetest.WriteKubeconfig(w.AdminKubeconfig(), w.Kube.Config()))
}

// writeAccess writes the service's way to the API server.
func (w *World) writeAccess() error {
	if w.options.Kube.Fault == nil && w.options.Kube.Answered == nil {
		return kubetest.WriteKubeconfig(w.Kubeconfig(), w.service)
	}
	var err error
	if w.proxy, err = faults.NewProxy(w.service, w.options.Kube); err != nil {
		return err
	}
	return w.proxy.WriteKubeconfig(w.Kubeconfig())
}

// waitForRights waits until rbac.yaml is in force: the API server takes a moment, and the service would not.
func waitForRights(ctx context.Context, service *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, rightsLimit)
	defer cancel()
	client, err := kubernetes.NewForConfig(service)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Group: "otc.mcsps.de", Resource: "rdss"},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: serviceName},
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
