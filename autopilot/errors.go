// SPDX-License-Identifier: Apache-2.0

package autopilot

import "errors"

// Errors of the stores that the users of the domain declare. Adapters translate their own errors into these.
var (
	// ErrConflict means that the object has changed since it was read. The caller must read it and decide again.
	ErrConflict = errors.New("changed since it was read")
	// ErrGone means that the object does not exist.
	ErrGone = errors.New("no longer exists")
	// ErrNotRequested means that a step before the request for a change failed, so nothing was requested.
	ErrNotRequested = errors.New("nothing was requested")
)

// RefusedError means that the API server or the cloud received a change and does not allow it.
type RefusedError struct {
	Reason  Reason // empty if the API server refuses
	Message string // the text of the API server or the cloud
}

func (e *RefusedError) Error() string { return "refused: " + e.Message }
