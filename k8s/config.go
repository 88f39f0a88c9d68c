// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
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

// RedirectLog sends the output of klog, which client-go uses, to log. klog has one logger per process, so callers
// must call RedirectLog once, before they create a client.
func RedirectLog(log *zap.Logger) {
	klog.SetLoggerWithOptions(libraryLog(log), klog.ContextualLogger(true))
}

func withLog(ctx context.Context, log *zap.Logger) context.Context {
	return klog.NewContext(ctx, libraryLog(log))
}

// libraryLog drops everything below info, whatever the level of log is. At higher verbosity client-go logs whole
// answers, and an Rds contains passwords.
func libraryLog(log *zap.Logger) logr.Logger {
	level := max(zapcore.LevelOf(log.Core()), zapcore.InfoLevel)
	return zapr.NewLogger(log.Named("client-go").WithOptions(zap.IncreaseLevel(level)))
}
