// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"slices"
	"time"
)

const (
	// maxConfirmations is how many confirmations are requested per window. SMN sends 200
	// (SMN umn: traffic_control_over_subscription_confirmation.rst); the rest is for other users of the tenant.
	maxConfirmations = 150
	// confirmationsWindow is the window of SMN's limit.
	confirmationsWindow = 10 * time.Minute
)

// confirmationAllowedAt returns when a confirmation may be requested; the zero time means now. With take, it counts a
// confirmation that is allowed now.
func (a *Alarms) confirmationAllowedAt(take bool) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.options.Now()
	hasEnded := func(at time.Time) bool { return now.Sub(at) >= confirmationsWindow }
	a.confirmations = slices.DeleteFunc(a.confirmations, hasEnded)
	if len(a.confirmations) == maxConfirmations {
		return a.confirmations[0].Add(confirmationsWindow)
	}
	if take {
		a.confirmations = append(a.confirmations, now)
	}
	return time.Time{}
}

// returnConfirmation removes the newest confirmation from the count, because SMN has not sent it.
func (a *Alarms) returnConfirmation() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.confirmations); n > 0 {
		a.confirmations = a.confirmations[:n-1]
	}
}
