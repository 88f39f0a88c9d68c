// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"slices"
	"time"
)

const (
	confirmationsAtMost = 150 // of the 200 that SMN sends (SMN umn: traffic_control_over_subscription_confirmation.rst)
	confirmationsWindow = 10 * time.Minute
)

// ConfirmationLimitError says that all is done but one thing: the subscription's confirmation was not asked for, because
// SMN sends only so many of them.
type ConfirmationLimitError struct {
	Until time.Time // when it may be asked for
}

func (e ConfirmationLimitError) Error() string {
	return "waiting for SMN's limit on confirmations until " + e.Until.UTC().Format(time.TimeOnly) + " UTC"
}

// confirmationAllowedAt is when a confirmation may be asked for; the zero time is now, and with take it counts as asked for.
func (a *Alarms) confirmationAllowedAt(take bool) (until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.confirmations = slices.DeleteFunc(a.confirmations, func(t time.Time) bool { return now.Sub(t) >= confirmationsWindow })
	if len(a.confirmations) >= confirmationsAtMost {
		return a.confirmations[0].Add(confirmationsWindow)
	}
	if take {
		a.confirmations = append(a.confirmations, now)
	}
	return time.Time{}
}

// returnConfirmation takes back the newest that counts as asked for: SMN has sent none.
func (a *Alarms) returnConfirmation() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.confirmations); n > 0 {
		a.confirmations = a.confirmations[:n-1]
	}
}
