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
		next, admission := autopilot.AddSignal(read.Status.Intake, sig)
		switch admission {
		case autopilot.SignalDuplicate:
			res = resultDuplicate
			return nil
		case autopilot.SignalStale:
			res = resultStale
			return nil
		}
		res, next.SigningCertURL = resultStored, m.envelope.CertURL
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
