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

func (r *Receiver) storeAlarm(ctx context.Context, m *message) (res result, err error) {
	sig, read := signal(m, r.Now()), m.target
	err = autopilot.RetryConflict(ctx, func() (err error) {
		if read == nil {
			if read, err = r.Store.LiveAutopilot(ctx, m.target.Namespace, m.target.Name); err != nil {
				return err
			}
		}
		var next v1alpha1.Intake
		if next, res = addSignal(read.Status.Intake, sig); res != resultStored {
			return nil
		}
		next.SigningCertURL = m.envelope.CertURL
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

// addSignal returns the intake with the signal and resultStored, unless the intake already has a newer one for its metric.
// It compares alarm times, because SMN may deliver late, twice or out of order. It does not modify the intake that is
// passed.
func addSignal(in v1alpha1.Intake, sig v1alpha1.Signal) (v1alpha1.Intake, result) {
	out := *in.DeepCopy()
	stored := autopilot.SignalOf(out, sig.Metric)
	switch {
	case stored == nil:
		out.Signals = append(out.Signals, sig)
	case stored.MessageID == sig.MessageID:
		return out, resultDuplicate
	case !sig.AlarmTime.After(stored.AlarmTime.Time):
		return out, resultStale
	default:
		*stored = sig
	}
	return out, resultStored
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
