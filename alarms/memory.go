// SPDX-License-Identifier: Apache-2.0

package alarms

import "time"

// What follows is remembered by the process alone. Whatever is forgotten costs a call, and a sentence reported once more.

// subscribed is what Subscribe returned: a subscription is ours although SMN lists its endpoint otherwise.
type subscribed struct {
	endpoint string
	at       time.Time // when the confirmation was asked for; the zero time is that none is waited for
}

// noteSubscribed keeps what Subscribe returned, also where it cannot be recorded: messages come at the same time, and what
// they leave may be in the way.
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

// repair is what was written to mend a thing, and what was read afterwards. One that the cloud acknowledged without effect
// is not repeated while both stay the same.
type repair struct{ wrote, reads string }

// ineffectiveRepair is when a repair changed nothing.
type ineffectiveRepair struct {
	repair
	at time.Time
}

// noteRepair keeps what a repair led to, and forgets one that took effect.
func (a *Alarms) noteRepair(id string, u repair) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.wrote == u.reads {
		delete(a.ineffective, id)
		return
	}
	a.ineffective[id] = ineffectiveRepair{u, a.now()}
}

// ineffectiveSince is when that was last written, and read so afterwards; the zero time is never.
func (a *Alarms) ineffectiveSince(id string, u repair) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.ineffective[id]; v.repair == u {
		return v.at
	}
	return time.Time{}
}

// forget drops what is remembered of things that are removed.
func (a *Alarms) forget(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		delete(a.subscribed, id)
		delete(a.ineffective, id)
	}
}
