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

// confirmation is the request for one confirmation.
type confirmation struct {
	at        time.Time
	namespace string
}

// confirmationAllowedAt returns when a namespace may request a confirmation; the zero time means now. With take it
// counts a confirmation that is allowed now.
func (a *Alarms) confirmationAllowedAt(namespace string, take bool) (until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.options.Now()
	a.confirmations = slices.DeleteFunc(a.confirmations,
		func(c confirmation) bool { return now.Sub(c.at) >= confirmationsWindow })
	for i := range a.confirmations {
		if hasShare(a.confirmations[i:], namespace) {
			break
		}
		until = a.confirmations[i].at.Add(confirmationsWindow)
	}
	if take && until.IsZero() {
		a.confirmations = append(a.confirmations, confirmation{now, namespace})
	}
	return until
}

// hasShare reports whether a namespace has requested less than two thirds of what the other namespaces leave. A
// namespace that switches its databases on and off therefore never takes all confirmations: a single one gets 100 of
// 150, and the next one 34 of the other 50.
func hasShare(requested []confirmation, namespace string) bool {
	own := 0
	for _, c := range requested {
		if c.namespace == namespace {
			own++
		}
	}
	left := maxConfirmations - (len(requested) - own)
	return 3*own < 2*left
}

// returnConfirmation removes the newest confirmation of a namespace from the count, because SMN has not sent it.
func (a *Alarms) returnConfirmation(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, c := range slices.Backward(a.confirmations) {
		if c.namespace == namespace {
			a.confirmations = slices.Delete(a.confirmations, i, i+1)
			return
		}
	}
}
