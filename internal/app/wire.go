// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Cluster is what the receiver and the controller need of Kubernetes; *k8s.Cluster is one.
type Cluster interface {
	controller.Kubernetes
	webhook.Store
}

// openTelekomCloud is the cloud as the controller needs it.
type openTelekomCloud struct {
	*cloud.Cloud
	*alarms.Alarms
}

// Parts holds the HTTP receiver and the controller.
type Parts struct {
	Receiver   *webhook.Receiver
	Controller *controller.Controller
}

// Wire builds the receiver and the controller. clusterID marks this cluster's objects in the cloud.
func Wire(o Options, kube Cluster, clusterID string, api *otc.Cloud, reg prometheus.Registerer) (Parts, error) {
	receiver, err := NewReceiver(o, kube, api, warn(kube), reg)
	if err != nil {
		return Parts{}, err
	}
	shared := cloud.New(api, o.Now)
	arming := alarms.New(alarms.Options{
		Cloud: api, Lister: shared, Metrics: alarmMetrics(), ClusterID: clusterID, Endpoint: o.PublicURL.String(),
		EveryNamespace: len(o.Namespaces) == 0, Now: o.Now,
	})
	return Parts{
		Receiver: receiver,
		Controller: controller.New(controller.Options{
			Kube: kube, Cloud: openTelekomCloud{shared, arming},
			Mode: o.Mode, Allowed: o.allowed(), Sweep: o.Sweep, Recheck: o.Recheck, MaxFlavorChanges: o.MaxFlavorChanges,
			Log: o.Log, Reg: reg, Now: o.Now, Chance: o.Chance,
		}),
	}, nil
}

// alarmMetrics returns the autopilot's table of metrics in the types of the package alarms.
func alarmMetrics() []alarms.Metric {
	var all []alarms.Metric
	for _, row := range autopilot.MetricTable() {
		all = append(all, alarms.Metric{Name: row.Metric, CloudEye: row.CloudEye, Unit: row.Unit})
	}
	return all
}

// NewReceiver returns the HTTP receiver, which writes the signals it receives to store.
func NewReceiver(o Options, store webhook.Store, api *otc.Cloud, warn func(*v1alpha1.RdsAutopilot, string, string),
	reg prometheus.Registerer) (*webhook.Receiver, error) {
	confirmHosts, err := ConfirmHosts(o, api.Region())
	if err != nil {
		return nil, err
	}
	certHosts := CertHosts(o, api)
	certificates, confirm := o.SMNClient, o.SMNClient
	if o.SMNClient == nil {
		certificates, confirm = o.smnClient(certHosts), o.smnClient(smn.Fixed(confirmHosts...))
	}
	return webhook.New(webhook.Options{
		Path: o.PublicURL.Path, Store: store, Keys: smn.NewKeys(certHosts, certificates, o.Now),
		Confirm: confirm, ConfirmHosts: confirmHosts, OurTopics: ourTopics(api), MaxMessageAge: o.MaxMessageAge,
		Warn: warn, Log: o.Log, Reg: reg, Now: o.Now,
	}), nil
}

// Watch notifies the controller of every change in the cluster. Call it before the cluster's Run.
func (p Parts) Watch(kube *k8s.Cluster) error {
	return errors.Join(kube.OnTarget(p.Controller.TargetChanged), kube.OnAutopilot(p.Controller.AutopilotChanged))
}

// warn returns a function that records a Warning event about a message, on the RdsAutopilot and on the Rds.
func warn(kube Cluster) func(a *v1alpha1.RdsAutopilot, reason, note string) {
	return func(a *v1alpha1.RdsAutopilot, reason, note string) {
		kube.Event(kube.Target(a.Namespace, a.Name), a, autopilot.Event{Warning: true, Reason: reason, Action: "Receive",
			Note: note})
	}
}

// location names our region and project in the cloud.
type location interface {
	Region() string
	ProjectID() string // empty before the first login
}

// ourTopics returns a function that reports whether a URN can be one of our topics. Before the first login our project
// is unknown, so a topic of any project can be ours.
func ourTopics(c location) func(urn string) bool {
	return func(urn string) bool {
		project := c.ProjectID()
		if parts := strings.Split(urn, ":"); project == "" && len(parts) == 5 {
			project = parts[3]
		}
		return webhook.TopicPrefix(c.Region(), project, v1alpha1.CloudNamePrefix)(urn)
	}
}
