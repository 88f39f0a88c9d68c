// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const topicName = "autopilot_" // how the names of our topics begin

// Cluster is what the receiver and the controller need of Kubernetes; *k8s.Cluster is one.
type Cluster interface {
	controller.Cache
	controller.Store
	controller.Applier
	controller.Writers
	controller.Recorder
	webhook.Store
}

// Parts are the receiver of messages and the loop that decides.
type Parts struct {
	Receiver   *webhook.Receiver
	Controller *controller.Controller
}

// Wire puts the receiver and the controller together. clusterID is what marks this cluster's things in the cloud.
func Wire(o Options, kube Cluster, clusterID string, api *otc.Cloud, reg prometheus.Registerer) (Parts, error) {
	receiver, err := NewReceiver(o, kube, api, warn(kube), reg)
	if err != nil {
		return Parts{}, err
	}
	shared := cloud.New(api, o.Now)
	return Parts{
		Receiver: receiver,
		Controller: controller.New(controller.Options{
			Cache: kube, Store: kube, Applier: kube, Writers: kube, Recorder: kube, Cloud: shared, Changer: shared,
			Arming: cloud.NewArming(shared, clusterID, o.PublicURL.String(), len(o.Namespaces) == 0),
			Mode:   o.Mode, Allowed: o.Allowed, Sweep: o.Sweep, Recheck: o.Recheck, MaxFlavorChanges: o.MaxFlavorChanges,
			Log: o.Log, Reg: reg, Now: o.Now, Chance: o.Chance,
		}),
	}, nil
}

// NewReceiver returns the receiver of messages alone, which keeps what it receives in that store.
func NewReceiver(o Options, store webhook.Store, api *otc.Cloud, warn func(*v1alpha1.RdsAutopilot, string, string), reg prometheus.Registerer) (*webhook.Receiver, error) {
	confirmHosts, err := ConfirmHosts(o, api.Region())
	if err != nil {
		return nil, err
	}
	certHosts := CertHosts(o, api)
	certificates, confirm := o.SMNClient, o.SMNClient
	if o.SMNClient == nil {
		certificates, confirm = smn.NewClient(certHosts, o.Roots), smn.NewClient(smn.Fixed(confirmHosts...), o.Roots)
	}
	return webhook.New(webhook.Options{
		Path: o.PublicURL.EscapedPath(), Store: store, Keys: smn.NewKeys(certHosts, certificates, o.Now),
		Confirm: confirm, ConfirmHosts: confirmHosts, OurTopics: ourTopics(api), MaxMessageAge: o.MaxMessageAge,
		Warn: warn, Log: o.Log, Reg: reg, Now: o.Now,
	}), nil
}

// Watch lets the controller know of every change in a cluster; it belongs before the cluster's Run.
func (p Parts) Watch(kube *k8s.Cluster) error {
	kube.OnIntake(p.Controller.IntakeStored)
	return errors.Join(kube.OnTarget(p.Controller.TargetChanged), kube.OnAutopilot(p.Controller.AutopilotChanged))
}

// warn emits an event about a message: on the autopilot, and on the Rds where people look.
func warn(kube Cluster) func(a *v1alpha1.RdsAutopilot, reason, note string) {
	return func(a *v1alpha1.RdsAutopilot, reason, note string) {
		kube.Event(kube.Target(a.Namespace, a.Name), a, autopilot.Event{Warning: true, Reason: reason, Action: "Receive", Note: note})
	}
}

// location is where we are in the cloud.
type location interface {
	Region() string
	ProjectID() string // empty while it is not known
}

// ourTopics reports whether a URN could be a topic of ours. Where the cloud was never reached our project is not known yet,
// and any could be.
func ourTopics(c location) func(urn string) bool {
	return func(urn string) bool {
		project := c.ProjectID()
		if parts := strings.Split(urn, ":"); project == "" && len(parts) == 5 {
			project = parts[3]
		}
		return webhook.TopicPrefix(c.Region(), project, topicName)(urn)
	}
}
