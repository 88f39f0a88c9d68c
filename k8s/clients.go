// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// self is what the API server and people see of us: field manager, lease, reporting controller, user agent.
const self = "rds-autopilot"

const (
	connectTimeout = 10 * time.Second // a start that cannot work ends within 15 s
	requestTimeout = 15 * time.Second // for every request that is not a watch
)

// Options of a connection.
type Options struct {
	// Version is shown in the user agent.
	Version string
	// Namespaces to watch and to search; none means all.
	Namespaces []string
	// Log also receives what client-go logs.
	Log *zap.Logger
}

// Cluster is one Kubernetes cluster, as far as the autopilot has to do with it.
type Cluster struct {
	*Cache
	events      *recorder
	unreachable atomic.Bool // the last probes of the API server failed

	config     *rest.Config
	transport  http.RoundTripper
	rdsAPI     rest.Interface
	ownAPI     rest.Interface
	codec      runtime.ParameterCodec
	core       corev1client.NamespacesGetter
	discovery  discoveryv1client.EndpointSlicesGetter
	namespaces []string
	onIntake   func(*autopilotv1.RdsAutopilot)
	searches   *rate.Limiter // of topics whose name does not say which autopilot they belong to
	log        *zap.Logger
}

type (
	rdsClient       = gentype.ClientWithList[*otcv1.Rds, *otcv1.RdsList]
	autopilotClient = gentype.ClientWithList[*autopilotv1.RdsAutopilot, *autopilotv1.RdsAutopilotList]
)

// NewConfig finds the way to the API server as kubectl does: by a kubeconfig file, else $KUBECONFIG, else ~/.kube/config, else
// the pod it runs in; contextName is one of the file's, empty means its current one. namespace is the context's.
func NewConfig(kubeconfig, contextName string) (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = kubeconfig, false
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName})
	if config, err = loader.ClientConfig(); err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, "", errors.New("no kubeconfig in $KUBECONFIG or ~/.kube/config, and not in a pod")
		}
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// Connect checks within 10 s that the API server answers, serves both kinds and lets us list them, and names in one line
// what is missing. Nothing is watched before Run.
func Connect(ctx context.Context, cfg *rest.Config, opts Options) (*Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = self + "/" + opts.Version
	cfg.ContentType = runtime.ContentTypeJSON
	// The API server sheds load by priority and fairness and says when to come back. A bucket on this side would only
	// let the storing of a notification or the renewal of the lease queue behind the leader's work.
	cfg.QPS = -1
	cfg.Timeout = 0 // would end watches too

	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure the Kubernetes client: %w", err)
	}

	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	c := &Cluster{
		config:     cfg,
		transport:  client.Transport,
		codec:      runtime.NewParameterCodec(scheme),
		namespaces: uniqueNamespaces(opts.Namespaces),
		onIntake:   func(*autopilotv1.RdsAutopilot) {},
		searches:   rate.NewLimiter(searchesPerSec, searchesPerSec),
		log:        opts.Log,
	}
	if c.rdsAPI, err = restClient(cfg, client, scheme, otcv1.GroupVersion()); err != nil {
		return nil, err
	}
	if c.ownAPI, err = restClient(cfg, client, scheme, autopilotv1.GroupVersion()); err != nil {
		return nil, err
	}
	if c.core, err = corev1client.NewForConfigAndClient(cfg, client); err != nil {
		return nil, fmt.Errorf("configure the client for namespaces: %w", err)
	}
	if c.discovery, err = discoveryv1client.NewForConfigAndClient(cfg, client); err != nil {
		return nil, fmt.Errorf("configure the client for EndpointSlices: %w", err)
	}
	// The library sends events, and gives them no deadline.
	limited := &http.Client{Transport: client.Transport, Timeout: requestTimeout}
	eventsClient, err := eventsv1client.NewForConfigAndClient(cfg, limited)
	if err != nil {
		return nil, fmt.Errorf("configure the client for events: %w", err)
	}
	if err := c.checkAccess(ctx); err != nil {
		return nil, err
	}
	c.events = newRecorder(eventsClient)
	if c.Cache, err = newCache(c); err != nil {
		return nil, err
	}
	return c, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, errors.Join(otcv1.AddToScheme(scheme), autopilotv1.AddToScheme(scheme))
}

func restClient(cfg *rest.Config, client *http.Client, scheme *runtime.Scheme, gv schema.GroupVersion) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion = &gv
	cfg.APIPath = "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	rc, err := rest.RESTClientForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("configure the client for %s: %w", gv, err)
	}
	return rc, nil
}

// uniqueNamespaces returns each namespace once, or the one name that means all of them.
func uniqueNamespaces(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	namespaces = slices.Clone(namespaces)
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// checkAccess lists instead of asking discovery, which lags behind a CRD that was just installed and says nothing of rights.
func (c *Cluster) checkAccess(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	one := metav1.ListOptions{Limit: 1}
	for _, ns := range c.namespaces {
		_, err := c.rdsIn(ns).List(ctx, one)
		if err := c.explainError(err, otcv1.Resource, otcv1.Group); err != nil {
			return err
		}
		_, err = c.autopilotsIn(ns).List(ctx, one)
		if err := c.explainError(err, autopilotv1.Resource, autopilotv1.Group); err != nil {
			return err
		}
	}
	return nil
}

// explainError says in one line what is missing.
func (c *Cluster) explainError(err error, resource, group string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("CRD %s.%s is not installed: kubectl apply -f deploy/crds", resource, group)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the Kubernetes API at %s refuses what deploy/rbac.yaml allows: %w", c.config.Host, err)
	}
	return fmt.Errorf("reach the Kubernetes API at %s: %w", c.config.Host, err)
}

func (c *Cluster) rdsIn(namespace string) *rdsClient {
	return gentype.NewClientWithList(otcv1.Resource, c.rdsAPI, c.codec, namespace,
		func() *otcv1.Rds { return &otcv1.Rds{} }, func() *otcv1.RdsList { return &otcv1.RdsList{} })
}

func (c *Cluster) autopilotsIn(namespace string) *autopilotClient {
	return gentype.NewClientWithList(autopilotv1.Resource, c.ownAPI, c.codec, namespace,
		func() *autopilotv1.RdsAutopilot { return &autopilotv1.RdsAutopilot{} },
		func() *autopilotv1.RdsAutopilotList { return &autopilotv1.RdsAutopilotList{} })
}

// ClusterID returns the uid of the namespace kube-system, which lives as long as the cluster.
func (c *Cluster) ClusterID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ns, err := c.core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(ns.UID), nil
}

// Close ends what Connect began, where Run is not called.
func (c *Cluster) Close() { c.events.shutdown() }

// Run watches, sends events and probes the API server until ctx ends.
func (c *Cluster) Run(ctx context.Context) error {
	ctx = withLog(ctx, c.log)
	defer c.events.shutdown()
	if err := c.events.start(ctx); err != nil {
		return fmt.Errorf("start sending events: %w", err)
	}
	var probing sync.WaitGroup
	probing.Go(func() { c.probeLoop(ctx) })
	c.run(ctx)
	probing.Wait()
	return nil
}
