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

// note keeps when the confirmation of a subscription was asked for; the zero time is that none is waited for. It tells what
// a run that could not record it has asked for: messages come at the same time, and what they leave may be in the way.
func (a *Alarms) note(urn string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.IsZero() {
		delete(a.since, urn)
		return
	}
	a.since[urn] = at
}

func (a *Alarms) noted(urn string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since[urn]
}

// mayAsk says when a confirmation may be asked for; the zero time is now. Then, to take it, it counts as asked for.
func (a *Alarms) mayAsk(take bool) (until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.asked = slices.DeleteFunc(a.asked, func(t time.Time) bool { return now.Sub(t) >= confirmationsWindow })
	if len(a.asked) >= confirmationsAtMost {
		return a.asked[0].Add(confirmationsWindow)
	}
	if take {
		a.asked = append(a.asked, now)
	}
	return time.Time{}
}
