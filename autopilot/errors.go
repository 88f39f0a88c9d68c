// SPDX-License-Identifier: Apache-2.0

package autopilot

import "errors"

// Errors of the stores that the domain's users declare. Adapters translate theirs into these.
var (
	// ErrConflict is a write on top of something that has changed since it was read: read again, decide anew.
	ErrConflict = errors.New("changed since it was read")
	// ErrGone is an object that no longer exists.
	ErrGone = errors.New("no longer exists")
)

// RefusedError is the answer of the API server, or of the cloud, to a change that it understood and does not allow.
type RefusedError struct {
	Reason  Reason // of the cloud; empty where the API server refuses
	Message string // in the words of whoever refuses
}

func (e *RefusedError) Error() string { return "refused: " + e.Message }
