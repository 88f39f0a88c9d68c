// SPDX-License-Identifier: Apache-2.0

package alarms

import "time"

// The state in this file is kept in memory only. After a restart it costs a few API calls and one repeated event.

// subscribed is the result of Subscribe. It identifies a subscription as ours even if SMN lists its endpoint
// differently.
type subscribed struct {
	endpoint string
	at       time.Time // when the confirmation was requested
}

// noteSubscribed stores the result of Subscribe, because recording it may fail.
func (a *Alarms) noteSubscribed(urn string, s subscribed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscribed[urn] = s
}

func (a *Alarms) wasSubscribed(urn string) subscribed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.subscribed[urn]
}

// ineffective is a repair that the cloud accepted without effect.
type ineffective struct {
	remaining string // how the cloud still differs: a difference of a rule, or the display name of a topic
	at        time.Time
}

// noteRepair stores how the cloud still differs after a repair of a rule or topic; empty means that it took effect.
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

// forget drops the state of removed things, by rule id, topic URN or subscription URN.
func (a *Alarms) forget(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		delete(a.subscribed, id)
		delete(a.ineffective, id)
	}
}
