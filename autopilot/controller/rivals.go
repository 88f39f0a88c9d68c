package controller

const (
	eventRival   = "OperatorAutopilot"
	eventObserve = "Observe" // the action of events about what others do, and of warnings
)

// warnOfRivals tells of the operator's own autopilot, which anybody can trigger.
func (r *round) warnOfRivals() {
	if r.rds.Spec.Endpoint != "" && r.first() {
		r.Cluster.Event(r.rds, r.rap, Event{Warning: true, Reason: eventRival, Action: eventObserve, Note: "spec.endpoint is set: the operator's own autopilot is on as well, and acts on messages that nobody verifies. Clear spec.endpoint"})
	}
}

// first reports whether this process has not yet told of this Rds.
func (r *round) first() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told[r.rds.UID]
	r.told[r.rds.UID] = true
	return !told
}
