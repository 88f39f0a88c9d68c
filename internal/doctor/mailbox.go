// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// mailboxPrefix is the prefix of the names of the RdsAutopilots that doctor creates.
const mailboxPrefix = "autopilot-doctor-"

// mailbox is an RdsAutopilot without a database. A receiver stores the accepted messages of doctor's topic in it.
type mailbox interface {
	// expect sets topic, rule and instance, by which the receiver recognizes the messages.
	expect(ctx context.Context, a v1alpha1.Alarms, in *v1alpha1.Instance) error
	// read returns what the receiver has stored, and the messages themselves if the receiver is doctor's own.
	read(ctx context.Context) (v1alpha1.Intake, []*message, error)
}

// kubeMailbox is the mailbox of the running service.
type kubeMailbox struct {
	api             *k8s.Cluster
	namespace, name string
}

func openMailbox(ctx context.Context, api *k8s.Cluster, namespace, name string) (mailbox, error) {
	m := &kubeMailbox{api, namespace, mailboxPrefix + name}
	return m, api.CreateForDoctor(ctx, namespace, m.name)
}

// expect reads the object again after a conflict, because the receiver writes the status too.
func (m *kubeMailbox) expect(ctx context.Context, alarms v1alpha1.Alarms, in *v1alpha1.Instance) error {
	return autopilot.RetryConflict(ctx, func() error {
		a, err := m.api.LiveAutopilot(ctx, m.namespace, m.name)
		if err != nil {
			return err
		}
		next := *a.Status.DeepCopy()
		next.Alarms, next.Instance = alarms, in
		_, err = m.api.WriteStatus(ctx, a, next)
		return err
	})
}

func (m *kubeMailbox) read(ctx context.Context) (v1alpha1.Intake, []*message, error) {
	a, err := m.api.LiveAutopilot(ctx, m.namespace, m.name)
	if err != nil {
		return v1alpha1.Intake{}, nil, err
	}
	return a.Status.Intake, nil, nil
}
