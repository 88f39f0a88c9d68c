// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// ErrLeaseLost: another replica leads, or the API server could not be reached for too long. The other errors that callers
// tell apart are the domain's: autopilot.ErrGone, autopilot.ErrConflict and autopilot.RefusedError. All else is an API server
// that could not be reached or does not let us.
var ErrLeaseLost = errors.New("lease lost")

// wrapError says what was tried, and translates the API server's errors into the domain's.
func wrapError(err error, tried string, args ...any) error {
	if err == nil {
		return nil
	}
	tried = fmt.Sprintf(tried, args...)
	switch {
	case isGone(err):
		return fmt.Errorf("%s: %w: %w", tried, autopilot.ErrGone, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", tried, autopilot.ErrConflict, err)
	}
	return fmt.Errorf("%s: %w", tried, err)
}

// isRefused recognises an answer that asking again at once does not change.
func isRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	case http.StatusInternalServerError:
		return true // a webhook that fails
	default:
		return code >= 400 && code < 500
	}
}

// isGone believes a 404 only if it is the API server's own about an object: a proxy's "page not found" must not look
// like a deleted database.
func isGone(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isTestFailed recognises the answer to a JSON patch that could not be applied: 422 without a cause. A value that the
// schema refuses is a 422 as well, but with the field among its causes.
func isTestFailed(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
