// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	if err != nil {
		return nil, "", explainKubeconfig(err, rules, contextName)
	}
	return config, namespace, nil
}

// explainKubeconfig returns an error of one line that names the files that were tried.
func explainKubeconfig(err error, rules *clientcmd.ClientConfigLoadingRules, contextName string) error {
	var found, described []string
	tried := rules.GetLoadingPrecedence()
	for _, file := range tried {
		if _, statErr := os.Stat(file); errors.Is(statErr, fs.ErrNotExist) {
			file += " (does not exist)"
		} else {
			found = append(found, file)
		}
		described = append(described, file)
	}
	raw, loadErr := rules.Load()
	if loadErr == nil && contextName == "" {
		contextName = raw.CurrentContext
	}
	switch {
	case rules.ExplicitPath != "" && len(found) == 0:
		return fmt.Errorf("%s does not exist", rules.ExplicitPath)
	case loadErr != nil: // names the file
		return fmt.Errorf("read kubeconfig: %w", loadErr)
	case contextName != "" && raw.Contexts[contextName] == nil:
		return fmt.Errorf("context %q is not in %s", contextName, strings.Join(described, " or "))
	case !clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("kubeconfig %s: %w", strings.Join(described, " or "), err)
	case len(found) > 0:
		return fmt.Errorf("kubeconfig %s names no API server, and this is not a pod", strings.Join(described, " or "))
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		return fmt.Errorf("no kubeconfig at %s ($KUBECONFIG), and not in a pod", strings.Join(tried, " or "))
	}
	return fmt.Errorf("%s does not exist, $KUBECONFIG is not set, and this is not a pod", strings.Join(tried, " or "))
}
