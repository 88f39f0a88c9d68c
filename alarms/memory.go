// SPDX-License-Identifier: Apache-2.0

package alarms

import "time"

// ineffective is a repair of a rule that the cloud accepted without effect. It is kept in memory only. After a restart
// it costs a few API calls and one repeated event.
type ineffective struct {
	remaining string // the fields of the rule that still differ
	at        time.Time
}

// noteRepair stores how the cloud still differs after a repair of a rule; empty means that it took effect.
func (a *Alarms) noteRepair(id, remaining string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if remaining == "" {
		delete(a.ineffective, id)
		return
	}
	a.ineffective[id] = ineffective{remaining, a.options.Now()}
}

// ineffectiveSince returns when a repair was last tried that left this difference; the zero time means never.
func (a *Alarms) ineffectiveSince(id, remaining string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.ineffective[id]; i.remaining == remaining {
		return i.at
	}
	return time.Time{}
}
