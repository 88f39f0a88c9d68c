// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// storeAlarm stores the signal of a notification.
func (r *Receiver) storeAlarm(ctx context.Context, m *message) (result, error) {
	sig := signal(m, r.Now())
	return r.writeIntake(ctx, m, func(in v1alpha1.Intake) (v1alpha1.Intake, result) {
		next, admission := autopilot.AddSignal(in, sig)
		next.SigningCertURL = m.envelope.CertURL
		switch admission {
		case autopilot.SignalDuplicate:
			return next, resultDuplicate
		case autopilot.SignalStale:
			return next, resultStale
		}
		return next, resultStored
	})
}

func signal(m *message, now time.Time) v1alpha1.Signal {
	a := m.alarm
	s := v1alpha1.Signal{
		Metric: m.metric, AlarmID: a.ID, State: v1alpha1.State(a.Status), AlarmTime: metav1.NewMicroTime(a.Time),
		MessageID: m.envelope.MessageID, ReceivedTime: metav1.NewMicroTime(now.Truncate(time.Microsecond)),
	}
	if !a.ValueTime.IsZero() {
		t := metav1.NewMicroTime(a.ValueTime)
		s.ValuePercent, s.DatapointTime = strconv.FormatFloat(a.Value, 'f', -1, 64), &t
	}
	return s
}

// writeIntake stores the intake that change returns. If the object has changed meanwhile, it applies change to the new
// version, until the context ends.
func (r *Receiver) writeIntake(
	ctx context.Context, m *message, change func(v1alpha1.Intake) (v1alpha1.Intake, result),
) (res result, err error) {
	read := m.target
	err = autopilot.RetryConflict(ctx, func() (err error) {
		if read == nil {
			if read, err = r.Store.LiveAutopilot(ctx, m.target.Namespace, m.target.Name); err != nil {
				return err
			}
		}
		var next v1alpha1.Intake
		if next, res = change(read.Status.Intake); res == resultDuplicate || res == resultStale {
			return nil
		}
		err = r.Store.WriteIntake(ctx, read, next)
		read = nil
		return err
	})
	switch {
	case errors.Is(err, autopilot.ErrGone):
		return resultIgnored, err
	case err != nil:
		return resultUnavailable, fmt.Errorf("store: %w", err)
	}
	return res, nil
}
