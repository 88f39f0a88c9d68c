// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// checklist counts what the demo expects, and keeps what was not met.
type checklist struct {
	mu     sync.Mutex
	count  int
	missed []error
}

// add stores one expectation. A non-nil error says why it was not met.
func (l *checklist) add(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	if err != nil {
		l.missed = append(l.missed, fmt.Errorf("not as expected: %s: %w", what, err))
	}
}

// armed waits until a database is armed.
func armed(ctx context.Context, db *world.DB) error {
	_, err := db.WaitAutopilot(ctx, "it is armed", world.Armed)
	return err
}

// asked waits until the Rds requests what is expected.
func asked(ctx context.Context, db *world.DB, p plan) error {
	_, err := db.WaitRds(ctx, fmt.Sprintf("the Rds asks for %d GB and %s", p.volumeGB, p.flavor), p.asks)
	return err
}

func (p plan) asks(r *otcv1.Rds) bool {
	return int(r.Spec.VolumeSize) == p.volumeGB && r.Spec.FlavorRef == p.flavor
}

// applied waits until the cloud has what is expected, and the change is recorded as completed.
func applied(ctx context.Context, db *world.DB, p plan) error {
	err := world.Eventually(ctx, p.Name+": the operator has applied it", func(context.Context) (bool, error) {
		in := db.Instance()
		return in.Status == simcloud.StatusActive && in.VolumeGB == p.volumeGB && in.Flavor == p.flavor, nil
	})
	if err != nil {
		return err
	}
	_, err = db.WaitAutopilot(ctx, "the change is recorded as completed", func(a *v1alpha1.RdsAutopilot) bool {
		return len(a.Status.Changes) > 0 && a.Status.Changes[0].State == v1alpha1.StateCompleted
	})
	return err
}

// cleared waits until the alarm is over, and the service has stored the message about it.
func cleared(ctx context.Context, db *world.DB, p plan) error {
	_, err := db.WaitAutopilot(ctx, fmt.Sprintf("the %s alarm is over and its message stored", p.metric), func(a *v1alpha1.RdsAutopilot) bool {
		rule, ok := db.Rule(p.metric)
		signal := autopilot.SignalOf(a.Status.Intake, p.metric)
		return ok && rule.State == simcloud.StateOK && signal != nil && signal.State == v1alpha1.StateOK
	})
	return err
}

// once checks that exactly one change was made, and none since the alarm's end.
func once(ctx context.Context, db *world.DB, p plan) error {
	a, err := db.Autopilot(ctx)
	if err != nil {
		return err
	}
	r, err := db.Rds(ctx)
	if err != nil {
		return err
	}
	in := db.Instance()
	switch {
	case len(a.Status.Changes) != 1 || a.Status.Changes[0].By != v1alpha1.ByAutopilot || change.IsPending(a.Status.Changes[0]):
		return fmt.Errorf("%s: want one change that is completed, got %+v", p.Name, a.Status.Changes)
	case !p.asks(r) || in.VolumeGB != p.volumeGB || in.Flavor != p.flavor:
		return fmt.Errorf("%s: the Rds asks for %d GB and %s, the cloud has %s", p.Name, r.Spec.VolumeSize, r.Spec.FlavorRef, size(in))
	}
	return nil
}
