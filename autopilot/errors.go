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

// RefusedError is the API server's answer to a patch that it understood and does not allow.
type RefusedError struct {
	Message string // the API server's
}

func (e *RefusedError) Error() string { return "refused: " + e.Message }
