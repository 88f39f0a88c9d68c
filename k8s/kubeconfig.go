// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// NewConfig finds the API server as kubectl does: from the given kubeconfig file, $KUBECONFIG, ~/.kube/config or the
// pod's ServiceAccount, in this order. contextName selects a context of the file; empty means its current one.
// namespace is that of the context. An error is one line that names the files that were tried.
func NewConfig(kubeconfig, contextName string) (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = kubeconfig, false
	overrides := &clientcmd.ConfigOverrides{CurrentContext: contextName}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err = loader.ClientConfig()
	if err == nil {
		namespace, _, err = loader.Namespace()
	}
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("no API server is named there, and this is not a pod")
	}
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w", strings.Join(rules.GetLoadingPrecedence(), " or "), err)
	}
	return config, namespace, nil
}
