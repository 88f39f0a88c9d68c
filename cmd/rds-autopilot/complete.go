// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// completeLimit is 3 seconds, because the shell accepts no input while it waits for a completion.
const completeLimit = 3 * time.Second

// completion completes names from the cluster and from the kubeconfig. A completion that fails offers nothing,
// because any text would appear in the line that is being typed.
type completion struct{ env func(string) string }

// register lets the shell complete databases, namespaces and contexts of the subcommands of root.
func (o completion) register(root *cobra.Command) {
	flags := map[string]cobra.CompletionFunc{
		"namespace": o.namespace, "lease-namespace": o.namespace, "watch-namespaces": o.namespaces, "context": o.context,
	}
	for _, c := range root.Commands() {
		if c.Name() == "plan" || c.Name() == "doctor" {
			c.ValidArgsFunction = o.database
		}
		for name, complete := range flags {
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, complete) // the only error is a second registration
			}
		}
	}
}

func (o completion) database(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 { // the commands take one name
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// An RdsAutopilot with spec.instanceID needs no Rds.
	return o.list(c, prefix, otcv1.GroupVersion().WithResource(otcv1.Resource),
		v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)), cobra.ShellCompDirectiveNoFileComp
}

func (o completion) namespace(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return o.list(c, prefix, corev1.SchemeGroupVersion.WithResource("namespaces")), cobra.ShellCompDirectiveNoFileComp
}

// namespaces completes the last element of a comma separated list.
func (o completion) namespaces(c *cobra.Command, args []string, list string) ([]string, cobra.ShellCompDirective) {
	given := list[:strings.LastIndex(list, ",")+1]
	var lists []string
	found, directive := o.namespace(c, args, list[len(given):])
	for _, name := range found {
		if !slices.Contains(strings.Split(given, ","), name) {
			lists = append(lists, given+name)
		}
	}
	return lists, directive | cobra.ShellCompDirectiveNoSpace // a comma may follow
}

func (o completion) context(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	kubeconfig, _, err := o.connectionFlags(c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	contexts, _ := k8s.Contexts(kubeconfig)
	return withPrefix(contexts, prefix), cobra.ShellCompDirectiveNoFileComp
}

// list returns the names of the objects of these kinds that begin with prefix. Objects with a namespace are those of -n
// or of the kubeconfig's context. A kind that is not installed, or that the user may not list, has none.
func (o completion) list(c *cobra.Command, prefix string, kinds ...schema.GroupVersionResource) []string {
	var names []string
	kubeconfig, contextName, err := o.connectionFlags(c)
	if err != nil {
		return nil
	}
	config, ofContext, err := k8s.NewConfig(kubeconfig, contextName)
	if err != nil {
		return nil
	}
	config.Timeout, config.WarningHandler = completeLimit, rest.NoWarnings{}
	client, err := metadata.NewForConfig(config) // not the specs, because those of Rds hold passwords
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), completeLimit)
	defer cancel()
	given, _ := c.Flags().GetString("namespace") // not every command has the flag
	for _, kind := range kinds {
		namespace := cmp.Or(given, ofContext)
		if kind.Group == corev1.GroupName { // a namespace is in no namespace
			namespace = metav1.NamespaceNone
		}
		list, err := client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, object := range list.Items {
			names = append(names, object.Name)
		}
	}
	return withPrefix(names, prefix)
}

// connectionFlags returns the kubeconfig file and the context of the line or of the environment.
func (o completion) connectionFlags(c *cobra.Command) (kubeconfig, contextName string, err error) {
	if err = fromEnv(c.Flags(), o.env); err != nil {
		return "", "", err
	}
	if kubeconfig, err = c.Flags().GetString("kubeconfig"); err != nil {
		return "", "", err
	}
	contextName, err = c.Flags().GetString("context")
	return kubeconfig, contextName, err
}

// withPrefix returns the names that begin with prefix, sorted and without duplicates. It modifies names.
func withPrefix(names []string, prefix string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Sort(names)
	return slices.Compact(names)
}
