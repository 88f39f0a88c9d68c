package alarms

import "time"

// What follows is remembered by the process alone. Whatever is forgotten costs a call, and a sentence told once more.

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

// unchanged is a repair that the cloud acknowledged without reading so afterwards: it is not repeated while neither what
// was written nor what is read is another.
type unchanged struct{ wrote, reads string }

// vain is when a repair changed nothing.
type vain struct {
	unchanged
	at time.Time
}

// noteRepair keeps what a repair led to, and forgets one that is not in vain.
func (a *Alarms) noteRepair(id string, u unchanged) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.wrote == u.reads {
		delete(a.vain, id)
		return
	}
	a.vain[id] = vain{u, a.now()}
}

// inVain says when that was last written, and read so afterwards; the zero time is never.
func (a *Alarms) inVain(id string, u unchanged) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.vain[id]; v.unchanged == u {
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
		delete(a.vain, id)
	}
}
