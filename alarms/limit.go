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

// giveBack takes back the newest that counts as asked for: SMN has sent none.
func (a *Alarms) giveBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.asked); n > 0 {
		a.asked = a.asked[:n-1]
	}
}
