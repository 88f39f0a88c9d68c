// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/page"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Cluster is what the receiver and the controller need of Kubernetes; *k8s.Cluster is one.
type Cluster interface {
	controller.Kubernetes
	SignedBefore(certURL string) (that, some bool)
	ByRule(alarmID string) []*v1alpha1.RdsAutopilot
	WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error
	IsGone(ctx context.Context, namespace, name string) bool
	// TopicEvent emits an event on the topic of the installation.
	TopicEvent(e autopilot.Event)
}

type openTelekomCloud struct {
	*otc.Cloud
	*alarms.Alarms
}

// Parts holds the HTTP receiver and the controller.
type Parts struct {
	Receiver   *webhook.Receiver
	Controller *controller.Controller
}

// Wire builds the receiver and the controller. clusterID marks this cluster's objects in the cloud.
func Wire(o Options, kube Cluster, clusterID string, api *otc.Cloud, reg prometheus.Registerer) (Parts, error) {
	own, err := o.ownNamespace()
	if err != nil {
		return Parts{}, err
	}
	o.Allowed.OwnNamespace = own
	receiver, err := newReceiver(o, kube, api, alarms.TopicName(clusterID, own), reg)
	if err != nil {
		return Parts{}, err
	}
	var metrics []alarms.Metric
	for _, row := range autopilot.MetricTable() {
		metrics = append(metrics, alarms.Metric{Name: row.Metric, CloudEye: row.CloudEye, Unit: row.Unit})
	}
	arming := alarms.New(alarms.Options{
		Cloud: api, Metrics: metrics, ClusterID: clusterID, Namespace: own,
		Endpoint: o.PublicURL.String(), IsGone: kube.IsGone, Now: o.Now,
	})
	return Parts{
		Receiver: receiver,
		Controller: controller.New(controller.Options{
			Kube: kube, Cloud: openTelekomCloud{api, arming},
			Mode: o.Mode, Allowed: o.Allowed, Sweep: o.Sweep, Recheck: o.Recheck, MaxFlavorChanges: o.MaxFlavorChanges,
			Log: o.Log, Reg: reg, Now: o.Now, Chance: o.Chance,
		}),
	}, nil
}

func newReceiver(o Options, kube Cluster, api *otc.Cloud, topicName string, reg prometheus.Registerer) (*webhook.Receiver, error) {
	confirmHosts, err := ConfirmHosts(o, api.Region())
	if err != nil {
		return nil, err
	}
	certHosts := CertHosts(o, api)
	certificates, confirm := o.SMNClient, o.SMNClient
	if o.SMNClient == nil {
		certificates, confirm = o.smnClient(certHosts), o.smnClient(smn.Fixed(confirmHosts...))
	}
	// What a namespace that is not watched has is not ours, and nobody needs the right to read it.
	watchedOwner := func(rule string) (namespace, name string, ok bool) {
		namespace, name, ok = alarms.ParseRuleName(rule)
		return namespace, name, ok && kube.IsWatched(namespace)
	}
	return webhook.New(webhook.Options{
		Path: o.PublicURL.Path, Store: kube, Keys: smn.NewKeys(certHosts, certificates, o.Now),
		Confirm: confirm, ConfirmHosts: confirmHosts, TopicName: topicName, RuleOwner: watchedOwner,
		MaxMessageAge: o.MaxMessageAge, Log: o.Log, Reg: reg, Now: o.Now,
		Warn: func(reason, note string) {
			kube.TopicEvent(autopilot.Event{Warning: true, Reason: reason, Action: "Receive", Note: note})
		},
	}), nil
}

// Watch notifies the controller of every change in the cluster. Call it before the cluster's Run.
func (p Parts) Watch(kube *k8s.Cluster) error {
	return errors.Join(kube.OnTarget(p.Controller.TargetChanged), kube.OnAutopilot(p.Controller.AutopilotChanged),
		kube.OnTopic(p.Controller.TopicChanged))
}

// newPage returns the handler of the page. All its reads of the cloud together use a tenth of the rate.
func newPage(o Options, kube *k8s.Cluster, api *otc.Cloud) http.Handler {
	reader := api.Sparing()
	past := func(ctx context.Context, a *v1alpha1.RdsAutopilot, period time.Duration,
		since time.Time) (none autopilot.Past, err error) {
		if a.Status.Instance == nil {
			return none, errors.New("the instance is not known yet")
		}
		inst := &autopilot.Instance{ID: a.Status.Instance.ID}
		if rules := a.Status.Alarms.Rules; len(rules) > 0 {
			return reader.Past(ctx, *inst, rules[0].Dimension, period, since)
		}
		// Without a rule, it is the dimension of the instance's engine, which only the cloud knows.
		if inst, err = reader.Instance(ctx, inst.ID, since); err != nil {
			return none, err
		}
		if inst == nil {
			return none, errors.New("the cloud has no such instance")
		}
		return reader.Past(ctx, *inst, "", period, since)
	}
	return page.New(page.Options{
		Cache: kube, Past: past, Sweep: o.Sweep, Recheck: o.Recheck, Version: o.Version, Now: o.Now,
	})
}

// Console is the host of confirmation links in the regions eu-de and eu-nl.
const Console = "console.otc.t-systems.com"

// CertHosts returns the hosts of signing certificates: the configured ones, else SMN's own host in the catalogue.
// Before the first login, or if --endpoint replaces SMN's host, it falls back to the host by the region's convention.
func CertHosts(o Options, c interface {
	Region() string
	SMNHost() string
}) smn.Hosts {
	if len(o.CertHosts) > 0 {
		return smn.Fixed(o.CertHosts...)
	}
	return func() []string {
		host, region := c.SMNHost(), c.Region()
		switch {
		case host != "" && o.Endpoints["smn"] == "":
			return []string{host}
		case region == "eu-ch2":
			return []string{"smn.eu-ch2.sc.otc.t-systems.com"}
		}
		return []string{"smn." + region + ".otc.t-systems.com"}
	}
}

// ConfirmHosts returns the hosts of confirmation links: the configured ones, else the console of a known region.
func ConfirmHosts(o Options, region string) ([]string, error) {
	switch {
	case len(o.ConfirmHosts) > 0:
		return o.ConfirmHosts, nil
	case slices.Contains([]string{"eu-de", "eu-nl"}, region):
		return []string{Console}, nil
	}
	return nil, fmt.Errorf("--smn-confirm-hosts is required in region %s: set it to the host of the region's console, which is the host of confirmation links", region)
}

// smnClient returns the client for those hosts. It takes the same proxy as the clients of the cloud and of Kubernetes.
func (o Options) smnClient(hosts smn.Hosts) *http.Client {
	return smn.NewClient(hosts, o.Roots, http.ProxyFromEnvironment)
}

// Probe returns an error if the service cannot connect to a host of certificates or confirmation links. It uses the
// client of the receiver, and any answer is a success.
func Probe(ctx context.Context, o Options, host string) error {
	client := cmp.Or(o.SMNClient, o.smnClient(smn.Fixed(host)))
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, (&url.URL{Scheme: "https", Host: host, Path: "/"}).String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
