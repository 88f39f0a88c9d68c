// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// SignalResult is the result of storing a signal.
type SignalResult int

// The results.
const (
	SignalAdded     SignalResult = iota // the signal is the newest of its metric and was stored
	SignalDuplicate                     // this very message is already stored
	SignalStale                         // a newer signal of the metric is already stored
)

// AddSignal returns the intake with the signal, unless the intake already has a newer one for its metric. It compares
// alarm times, because SMN may deliver late, twice or out of order. It does not modify the intake that is passed.
func AddSignal(in v1alpha1.Intake, sig v1alpha1.Signal) (v1alpha1.Intake, SignalResult) {
	out := *in.DeepCopy()
	stored := SignalOf(out, sig.Metric)
	switch {
	case stored == nil:
		out.Signals = append(out.Signals, sig)
	case stored.MessageID == sig.MessageID:
		return out, SignalDuplicate
	case !sig.AlarmTime.After(stored.AlarmTime.Time):
		return out, SignalStale
	default:
		*stored = sig
	}
	return out, SignalAdded
}

// SignalOf returns the stored signal of a metric, or nil.
func SignalOf(in v1alpha1.Intake, m v1alpha1.Metric) *v1alpha1.Signal {
	if i := slices.IndexFunc(in.Signals, func(s v1alpha1.Signal) bool { return s.Metric == m }); i >= 0 {
		return &in.Signals[i]
	}
	return nil
}
