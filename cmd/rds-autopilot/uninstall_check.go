// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// listPage bounds the memory of one answer: an object may have 1.5 MB.
	listPage = 25
	// namedAtMost is how many objects the command names, so that its output stays short with thousands of them.
	namedAtMost = 10
)

// howToUninstall follows the names of the objects that still need the service. Function advice fills in the words in
// braces.
const howToUninstall = `
1. Switch the service off. After a refused uninstallation, helm upgrade does not work, so change its Deployment:
   kubectl -n {namespace} set env deployment/{deployment} RDS_AUTOPILOT_MODE=Off
2. Wait until it has removed them. No finalizer is left then:
   kubectl get rap -A -o custom-columns='NAMESPACE:.metadata.namespace,NAME:.metadata.name,FINALIZERS:.metadata.finalizers'
3. Uninstall it again.
To keep the service after all, go back to the last revision of helm history:
   helm rollback {release} REVISION --namespace {namespace} --force-conflicts
To leave topics and alarm rules in the cloud, uninstall with --no-hooks. Then remove the finalizer of each object, because
otherwise neither it nor its namespace can be deleted:
   kubectl patch rap NAME -n NAMESPACE --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'
`

// howToLeave follows the names of the objects in namespaces that an upgrade would take out of watchNamespaces.
const howToLeave = `
Keep their namespaces in watchNamespaces, or add them again. Turn each object off, wait until it has no finalizer, and upgrade:
   kubectl patch rap NAME -n NAMESPACE --type=merge -p '{"spec":{"mode":"Off"}}'
`

func newUninstallCheck(env func(string) string) *cobra.Command {
	o := newOptions(env)
	c := &cobra.Command{
		Use: "uninstall-check [NAMESPACE...]", Short: "Report whether the service can be uninstalled, or which objects still need it",
		Long: `Uninstall-check lists the RdsAutopilots that have the service's finalizer. Only the service removes their topics and alarm
rules from the cloud, and then the finalizer. The exit code is 0 if there is none, and 1 if one is left. While one is left, helm
uninstall is refused. The command changes nothing.

With names of namespaces, it skips these: the service continues to watch them. The chart runs it so before an upgrade that
takes others out of watchNamespaces.`,
	}
	c.Example = "  rds-autopilot uninstall-check --kubeconfig ~/.kube/config"
	fs := c.Flags()
	fs.SortFlags = false
	o.kubernetes(fs)
	fs.StringSliceVar(&o.Namespaces, "watch-namespaces", nil,
		"comma separated `namespaces` that serve watches; empty means all")
	c.RunE = func(c *cobra.Command, kept []string) error {
		config, _, err := o.config()
		if err != nil {
			return err
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("configure the Kubernetes client: %w", err)
		}
		can, what, how := "The service can be uninstalled", "uninstall the service", howToUninstall
		if len(kept) > 0 {
			can, what, how = "The namespaces can leave watchNamespaces", "take their namespaces out of watchNamespaces", howToLeave
		}
		left, err := finalized(c.Context(), client, o.Namespaces, kept)
		switch {
		case err != nil:
			return err
		case len(left) == 0:
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: no RdsAutopilot has the finalizer %s\n", can, v1alpha1.Finalizer)
			return err
		}
		named := strings.Join(left[:min(len(left), namedAtMost)], ", ")
		if more := len(left) - namedAtMost; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(c.OutOrStdout(), "Do not %s yet. %d RdsAutopilots have topics and alarm rules in the cloud, "+
			"which only the service removes: %s\n%s", what, len(left), named, advice(how, env))
		return errCheckFailed
	}
	return c
}

// advice names this release in a text, as far as the chart's variables and the pod tell it.
func advice(text string, env func(string) string) string {
	namespace, err := k8s.OwnNamespace()
	if err != nil { // not in a pod
		namespace = "NAMESPACE"
	}
	return strings.NewReplacer("{namespace}", namespace,
		"{deployment}", cmp.Or(env(envName("lease-name")), "DEPLOYMENT"), // the chart gives the lease its name
		"{release}", cmp.Or(env(envName("release")), "RELEASE")).Replace(text)
}

// finalized returns NAMESPACE/NAME of the RdsAutopilots with our finalizer, in these namespaces or, if there are none,
// in all. It skips those of kept namespaces.
func finalized(ctx context.Context, client dynamic.Interface, namespaces, kept []string) (found []string, err error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, ns := range namespaces {
		for opts := (metav1.ListOptions{Limit: listPage}); ; {
			page, err := client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(ns).List(ctx, opts)
			if apierrors.IsNotFound(err) { // the CRD is gone, and every object with it
				return nil, nil
			}
			if err != nil {
				return nil, fmt.Errorf("list RdsAutopilots: %w", err)
			}
			for _, a := range page.Items {
				if slices.Contains(a.GetFinalizers(), v1alpha1.Finalizer) && !slices.Contains(kept, a.GetNamespace()) {
					found = append(found, a.GetNamespace()+"/"+a.GetName())
				}
			}
			if opts.Continue = page.GetContinue(); opts.Continue == "" {
				break
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
