// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"maps"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// maxConfirmations is how many confirmations are requested per window. SMN sends 200
	// (SMN umn: traffic_control_over_subscription_confirmation.rst); the rest is for other users of the tenant.
	maxConfirmations = 150
	// confirmationsWindow is the window of SMN's limit.
	confirmationsWindow = 10 * time.Minute
)

// confirmation is the request for one confirmation, or the last refusal of a request that waits for the limit.
type confirmation struct {
	at        time.Time
	namespace string
}

// confirmationAllowedAt returns when a database may request a confirmation; the zero time means now. Its namespace has
// a share, and gets all that is left while no database of another namespace waits. With take, confirmationAllowedAt
// counts a confirmation that is allowed now. It stores a database that must wait.
func (a *Alarms) confirmationAllowedAt(of *v1alpha1.RdsAutopilot, take bool) (until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, name := a.options.Now(), cloudName(of)
	hasEnded := func(c confirmation) bool { return now.Sub(c.at) >= confirmationsWindow }
	a.confirmations = slices.DeleteFunc(a.confirmations, hasEnded)
	maps.DeleteFunc(a.waiting, func(_ string, c confirmation) bool { return hasEnded(c) })
	othersWait := false
	for _, c := range a.waiting {
		othersWait = othersWait || c.namespace != of.Namespace
	}
	for i := range a.confirmations {
		if left := a.confirmations[i:]; hasShare(left, of.Namespace) || !othersWait && len(left) < maxConfirmations {
			break
		}
		until = a.confirmations[i].at.Add(confirmationsWindow)
	}
	switch {
	case !until.IsZero():
		a.waiting[name] = confirmation{now, of.Namespace}
	case take:
		delete(a.waiting, name)
		a.confirmations = append(a.confirmations, confirmation{now, of.Namespace})
	}
	return until
}

// hasShare reports whether a namespace has requested less than two thirds of what the other namespaces leave. While
// others wait, a namespace that switches its databases on and off therefore never takes all confirmations: the first
// one gets 100 of 150, and the next one 34 of the other 50.
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
