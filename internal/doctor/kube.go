// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// cluster holds the clients of the Kubernetes API.
type cluster struct {
	api       *k8s.Cluster
	access    authorizationv1client.AuthorizationV1Interface
	leases    coordinationv1client.CoordinationV1Interface
	clusterID string
	refused   []string // watched namespaces that we may not list
	lacksRds  bool     // the CRD of the Rds is neither installed nor needed
}

func connectKube(ctx context.Context, config *rest.Config, o app.Options) (*cluster, error) {
	api, err := app.ConnectKube(ctx, config, o)
	if err != nil {
		return nil, err
	}
	access, err0 := authorizationv1client.NewForConfig(config)
	leases, err1 := coordinationv1client.NewForConfig(config)
	id, err2 := api.ClusterID(ctx)
	if err := errors.Join(err0, err1, err2); err != nil {
		api.Close()
		return nil, err
	}
	return &cluster{api: api, access: access, leases: leases, clusterID: id,
		refused: api.RefusedNamespaces(), lacksRds: api.LacksRds()}, nil
}

func (x *examination) checkKubernetes(context.Context) []Result {
	if x.KubeErr == nil && len(x.kube.refused) > 0 {
		return result(Warning, "Restore the Role and RoleBinding there, or remove the namespace from --watch-namespaces",
			"The API answers, but does not let us list %s: nothing there is managed", strings.Join(x.kube.refused, ", "))
	}
	if x.KubeErr == nil && x.kube.lacksRds {
		return ok("The API answers, and serves rdsautopilots. It serves no rdss, which --allow-apply=Cloud does not need")
	}
	if x.KubeErr == nil {
		return ok("The API answers, and serves rdss and rdsautopilots")
	}
	do := "Check --kubeconfig and --context"
	switch text := x.KubeErr.Error(); {
	case strings.Contains(text, "CRD "):
		do = "Install the CRDs: kubectl apply -f deploy/crds"
	case apierrors.IsForbidden(x.KubeErr):
		do = "Run doctor with the rights of deploy/rbac.yaml, or in the service's pod"
	}
	return result(Failed, do, "%v", x.KubeErr)
}

// checkRBAC reviews the rights in deploy/rbac.yaml.
func (x *examination) checkRBAC(ctx context.Context) []Result {
	var refused []string
	for _, a := range x.access() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		answer, err := x.kube.access.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return result(Unseen, "", "The API server does not answer whether a right exists: %v", err)
		}
		if !answer.Status.Allowed {
			refused = append(refused, strings.TrimSpace(fmt.Sprintf("%s %s%s %s", a.Verb, a.Resource, suffix("/", a.Subresource),
				suffix("in ", a.Namespace))))
		}
	}
	if len(refused) > 0 {
		return result(Failed, "Apply deploy/rbac.yaml, or run doctor in the service's pod", "Not allowed: %s",
			strings.Join(refused, ", "))
	}
	return ok("The user of this run has all rights that serve needs")
}

// suffix returns text after that prefix, or nothing if text is empty.
func suffix(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// access returns the rights that serve needs.
func (x *examination) access() (all []authorizationv1.ResourceAttributes) {
	add := func(namespaces []string, group, resource, subresource, name string, verbs ...string) {
		for _, ns := range namespaces {
			for _, verb := range verbs {
				all = append(all, authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Group: group, Resource: resource,
					Subresource: subresource, Name: name})
			}
		}
	}
	// The check kubernetes reports the namespaces that refuse us.
	watched := slices.DeleteFunc(slices.Clone(x.Namespaces), func(ns string) bool { return slices.Contains(x.kube.refused, ns) })
	if len(x.Namespaces) == 0 {
		watched = []string{metav1.NamespaceAll}
	}
	add(watched, otcv1.Group, otcv1.Resource, "", "", "get", "list", "watch", "patch")
	add(watched, v1alpha1.Group, v1alpha1.Resource, "", "", "get", "list", "watch", "create", "patch", "delete")
	add(watched, v1alpha1.Group, v1alpha1.Resource, "status", "", "patch")
	add(watched, "events.k8s.io", "events", "", "", "create", "patch")
	own := x.leaseNamespace()
	if len(x.Namespaces) > 1 || len(x.Namespaces) == 1 && x.Namespaces[0] != own {
		// The service needs these rights to finish in a namespace whose RoleBinding is gone.
		add([]string{metav1.NamespaceAll}, v1alpha1.Group, v1alpha1.Resource, "", "", "get", "list", "watch", "patch")
		add([]string{metav1.NamespaceAll}, v1alpha1.Group, v1alpha1.Resource, "status", "", "patch")
	}
	add([]string{x.System}, "", "namespaces", "", x.System, "get") // a namespace belongs to itself
	add([]string{x.System}, "coordination.k8s.io", "leases", "", "", "create")
	add([]string{x.System}, "coordination.k8s.io", "leases", "", claimsLease, "get", "update")
	if ns := x.leaseNamespace(); ns != "" {
		add([]string{ns}, "coordination.k8s.io", "leases", "", "", "create")
		add([]string{ns}, "coordination.k8s.io", "leases", "", x.LeaseName, "get", "update")
		add([]string{ns}, "", "configmaps", "", "", "create")
		add([]string{ns}, "", "configmaps", "", k8s.HoldName(x.LeaseName), "delete")
	}
	return all
}

// claimsLease is the lease in the system namespace that holds the claims of all installations.
const claimsLease = "rds-autopilot"

// leaseNamespace returns the flag's value, else the pod's namespace. It is empty outside a pod.
func (x *examination) leaseNamespace() string {
	if x.LeaseNamespace != "" {
		return x.LeaseNamespace
	}
	ns, err := k8s.OwnNamespace()
	if err != nil {
		return ""
	}
	return ns
}

func (x *examination) checkLease(ctx context.Context) []Result {
	if !x.LeaderElect {
		return ok("Not needed, because --leader-elect is false: there is one replica, which leads")
	}
	ns := x.leaseNamespace()
	if ns == "" {
		return result(Unseen, "Give --lease-namespace, the namespace of the service",
			"Outside a pod, doctor does not know the service's namespace")
	}
	lease, err := x.kube.leases.Leases(ns).Get(ctx, x.LeaseName, metav1.GetOptions{})
	missing := Warning
	if x.Listen != nil { // doctor receives the messages, so the service need not run yet
		missing = OK
	}
	switch {
	case apierrors.IsNotFound(err):
		return result(missing, "Start the service, or receive the messages here with --listen. "+
			"If the service runs with --leader-elect=false, give this flag to doctor too",
			"There is no lease %s/%s: no service with leader election has run here yet", ns, x.LeaseName)
	case err != nil:
		return result(Failed, "", "%v", err)
	case lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" ||
		x.Now().Sub(lease.Spec.RenewTime.Time) > time.Minute:
		return result(missing, "Check the service's pods: kubectl get pods", "No replica holds the lease %s/%s", ns,
			x.LeaseName)
	}
	return ok("%s leads", *lease.Spec.HolderIdentity)
}
