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
	"github.com/mcsps/rds-autopilot/autopilot/smn"
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

// storeSubscription stores a confirmation or cancellation, which makes the leader read the list of subscriptions. It
// returns the given result if it has stored it.
func (r *Receiver) storeSubscription(ctx context.Context, m *message, stored result) (result, error) {
	sent := metav1.NewMicroTime(m.envelope.Time)
	sig := &v1alpha1.SubscriptionSignal{
		Type: string(m.envelope.Type), MessageID: m.envelope.MessageID,
		SentTime: &sent, ReceivedTime: metav1.NewMicroTime(r.Now().Truncate(time.Microsecond)),
	}
	return r.writeIntake(ctx, m, func(in v1alpha1.Intake) (v1alpha1.Intake, result) {
		if res := repeated(in, m.envelope); res != "" {
			return in, res
		}
		next := *in.DeepCopy()
		next.Subscription, next.SigningCertURL = sig, m.envelope.CertURL
		return next, stored
	})
}

// repeated returns a result if a confirmation or cancellation is stored, or was signed before the stored one. Otherwise
// two recorded messages, sent in turn, would cause endless writes and calls.
func repeated(in v1alpha1.Intake, e smn.Envelope) result {
	switch was := in.Subscription; {
	case was == nil:
	case was.MessageID == e.MessageID:
		return resultDuplicate
	case was.SentTime != nil && e.Time.Before(was.SentTime.Time):
		return resultStale
	}
	return ""
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
