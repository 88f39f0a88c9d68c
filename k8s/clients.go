// SPDX-License-Identifier: Apache-2.0

// Package k8s connects the service to the Kubernetes API. It has clients and caches for the operator's Rds and for
// RdsAutopilot, the few writes that the service makes, events, and the leader's lease.
//
// It guarantees:
//
//   - It patches only spec.volumesize and spec.flavorref of an Rds, and only if the old value is the one that was
//     decided on.
//   - Receiver and leader write the status of the same RdsAutopilot. Neither writes the other's fields, and neither
//     overwrites a version that it has not read.
//   - It drops every field of an Rds that the Go type does not have, passwords above all, when it decodes an answer. It
//     drops foreign annotations as well, because kubectl copies the whole object into one.
//   - Every call has a deadline of its own, besides that of the caller.
//
// The package imports autopilot for the domain's types and errors, and implements the interfaces that controller and
// webhook declare. It must not know what a decision is, Cloud Eye, SMN or the cloud. It imports neither alarms nor
// internal/otc.
package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// self is the name of this service as field manager, reporting controller and user agent.
const self = "rds-autopilot"

const (
	// connectTimeout is 10 seconds so that a start that cannot work ends within 15 seconds.
	connectTimeout = 10 * time.Second
	// requestTimeout bounds every request except watches, so that no round waits for a hanging API server.
	requestTimeout = 15 * time.Second
)

// Options of a connection.
type Options struct {
	// Version is part of the user agent.
	Version string
	// Namespaces are those to watch and to search. Empty means all.
	Namespaces []string
	// SystemNamespace identifies the cluster by its uid. Empty means kube-system.
	SystemNamespace string
	// Own is the service's namespace, which is always watched. Its ConfigMap TopicConfigMap holds the topic.
	Own string
	// Labels are those of the objects that the service creates.
	Labels map[string]string
	// Log also receives the log of client-go.
	Log *zap.Logger
}

// Cluster is a connection to a Kubernetes cluster. Its caches hold the Rds, the RdsAutopilots and the topic as the
// watches last delivered them. They may be behind the API server, and keep their objects while the API server is away.
// Callers must not modify the objects of a cache.
type Cluster struct {
	*refusals
	rds         informers[*otcv1.Rds] // in the order of namespaces, as autopilots
	autopilots  informers[*autopilotv1.RdsAutopilot]
	topic       informers[*corev1.ConfigMap]
	synced      []checker
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	unreachable atomic.Bool // set while the probes of the API server fail

	config     *rest.Config
	transport  http.RoundTripper
	rdsAPI     rest.Interface
	ownAPI     rest.Interface
	codec      runtime.ParameterCodec
	core       corev1client.CoreV1Interface
	events     eventsv1client.EventsV1Interface
	namespaces []string
	system     string // Options.SystemNamespace
	own        string // Options.Own
	labels     map[string]string
	log        *zap.Logger
}

type (
	rdsClient       = gentype.ClientWithList[*otcv1.Rds, *otcv1.RdsList]
	autopilotClient = gentype.ClientWithList[*autopilotv1.RdsAutopilot, *autopilotv1.RdsAutopilotList]
)

// Connect checks within 10 seconds that the API server answers, serves both kinds and allows us to list them in one of
// the namespaces. Its error is one line that names what is missing. The watches start with Run.
func Connect(ctx context.Context, cfg *rest.Config, opts Options) (*Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = self + "/" + opts.Version
	cfg.ContentType = runtime.ContentTypeJSON
	// The API server limits load itself, by priority and fairness. With a limit on this side, storing a notification
	// or renewing the lease would wait behind the leader's work.
	cfg.QPS = -1
	cfg.Timeout = 0 // it would end watches too

	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure the Kubernetes client: %w", err)
	}

	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := errors.Join(otcv1.AddToScheme(scheme), autopilotv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	namespaces := []string{metav1.NamespaceAll}
	if len(opts.Namespaces) > 0 {
		watched := append(slices.Clone(opts.Namespaces), opts.Own)
		namespaces = slices.Compact(slices.Sorted(slices.Values(watched)))
	}
	c := &Cluster{
		config:     cfg,
		transport:  client.Transport,
		codec:      runtime.NewParameterCodec(scheme),
		namespaces: namespaces,
		system:     cmp.Or(opts.SystemNamespace, metav1.NamespaceSystem),
		own:        opts.Own,
		labels:     opts.Labels,
		refusals:   &refusals{log: opts.Log, now: map[[2]string]error{}},
		log:        opts.Log,
	}
	if c.rdsAPI, err = restClient(cfg, client, scheme, otcv1.GroupVersion()); err != nil {
		return nil, err
	}
	if c.ownAPI, err = restClient(cfg, client, scheme, autopilotv1.GroupVersion()); err != nil {
		return nil, err
	}
	if c.core, err = corev1client.NewForConfigAndClient(cfg, client); err != nil {
		return nil, fmt.Errorf("configure the client for namespaces and ConfigMaps: %w", err)
	}
	// The library sends events without a deadline, so this client has one.
	limited := &http.Client{Transport: client.Transport, Timeout: requestTimeout}
	if c.events, err = eventsv1client.NewForConfigAndClient(cfg, limited); err != nil {
		return nil, fmt.Errorf("configure the client for events: %w", err)
	}
	if err := c.checkAccess(ctx); err != nil {
		return nil, err
	}
	c.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: c.events})
	c.recorder = c.broadcaster.NewRecorder(scheme, self)
	c.addInformers()
	return c, nil
}

func restClient(cfg *rest.Config, client *http.Client, scheme *runtime.Scheme,
	gv schema.GroupVersion) (rest.Interface, error) {
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

// checkAccess lists both kinds. Discovery would lag behind a CRD that was just installed, and would not show missing
// rights. A namespace that refuses us is an error only if all of them do. The informers wait for a definition of Rds.
func (c *Cluster) checkAccess(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	one := metav1.ListOptions{Limit: 1}
	var refused error
	for _, ns := range c.namespaces {
		_, err := c.rdsIn(ns).List(ctx, one)
		err = c.proven(ctx, otcv1.Resource, err)
		c.note(ns, otcv1.Resource, err)
		if err == nil || apierrors.IsNotFound(err) {
			_, err = c.autopilotsIn(ns).List(ctx, one)
			c.note(ns, autopilotv1.Resource, err)
		}
		if apierrors.IsForbidden(err) {
			refused = c.explainError(err)
		} else if err != nil {
			return c.explainError(err)
		}
	}
	if len(c.RefusedNamespaces()) == len(c.namespaces) {
		return refused
	}
	return nil
}

func (c *Cluster) explainError(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("CRD %s.%s is not installed: kubectl apply -f deploy/crds", autopilotv1.Resource, autopilotv1.Group)
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

// ClusterID returns the uid of the system namespace, which identifies the cluster for its whole life.
func (c *Cluster) ClusterID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ns, err := c.core.Namespaces().Get(ctx, c.system, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get namespace %s: %w", c.system, err)
	}
	return string(ns.UID), nil
}

// Close releases what Connect has started. Callers that do not call Run must call it.
func (c *Cluster) Close() { c.broadcaster.Shutdown() }

// Run watches both kinds, sends events and probes the API server until ctx ends.
func (c *Cluster) Run(ctx context.Context) error {
	ctx = withLog(ctx, c.log)
	defer c.broadcaster.Shutdown()
	if err := c.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("start sending events: %w", err)
	}
	var running sync.WaitGroup
	running.Go(func() { c.probeLoop(ctx) })
	running.Go(func() { c.topic.run(ctx) })
	running.Go(func() { c.autopilots.run(ctx) })
	c.rds.run(ctx)
	running.Wait()
	return nil
}

// maxNote is 1024 bytes because the API server refuses an event with a longer note.
const maxNote = 1024

// Event emits an event on the Rds and one on the RdsAutopilot. Either may be nil. It does not wait and returns no
// error, because log and status have the same information. The library sends nothing before Run. It merges events
// that differ only in their note within six minutes into one with a count and the first note.
func (c *Cluster) Event(t *autopilot.Target, a *autopilotv1.RdsAutopilot, e autopilot.Event) {
	if t != nil && !t.NoRds {
		c.event(corev1.ObjectReference{
			APIVersion: otcv1.GroupVersion().String(), Kind: otcv1.Kind, Namespace: t.Namespace, Name: t.Name, UID: t.UID,
			ResourceVersion: t.ResourceVersion,
		}, e)
	}
	if a != nil {
		c.event(corev1.ObjectReference{
			APIVersion: autopilotv1.GroupVersion().String(), Kind: autopilotv1.Kind, Namespace: a.Namespace, Name: a.Name,
			UID: a.UID, ResourceVersion: a.ResourceVersion,
		}, e)
	}
}

func (c *Cluster) event(regarding corev1.ObjectReference, e autopilot.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if !e.Change { // without the version, the library merges equal events; changes must stay separate
		regarding.ResourceVersion = ""
	}
	c.recorder.Eventf(&regarding, nil, kind, e.Reason, e.Action, "%s", shorten.To(e.Note, maxNote))
}

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
