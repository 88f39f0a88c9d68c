// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/otc"
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
	arming := alarms.New(alarms.Options{
		Cloud: api, Metrics: alarmMetrics(), ClusterID: clusterID, Namespace: own,
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

func alarmMetrics() []alarms.Metric {
	var all []alarms.Metric
	for _, row := range autopilot.MetricTable() {
		all = append(all, alarms.Metric{Name: row.Metric, CloudEye: row.CloudEye, Unit: row.Unit})
	}
	return all
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
	return webhook.New(webhook.Options{
		Path: o.PublicURL.Path, Store: kube, Keys: smn.NewKeys(certHosts, certificates, o.Now),
		Confirm: confirm, ConfirmHosts: confirmHosts, TopicName: topicName, RuleOwner: alarms.ParseRuleName,
		MaxMessageAge: o.MaxMessageAge, Warn: warn(kube), Log: o.Log, Reg: reg, Now: o.Now,
	}), nil
}

// Watch notifies the controller of every change in the cluster. Call it before the cluster's Run.
func (p Parts) Watch(kube *k8s.Cluster) error {
	return errors.Join(kube.OnTarget(p.Controller.TargetChanged), kube.OnAutopilot(p.Controller.AutopilotChanged),
		kube.OnTopic(p.Controller.TopicChanged))
}

func warn(kube Cluster) func(reason, note string) {
	return func(reason, note string) {
		kube.TopicEvent(autopilot.Event{Warning: true, Reason: reason, Action: "Receive", Note: note})
	}
}
