// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
)

// ErrLeaseLost means that another replica leads, or that this replica could not renew its lease in time. The other
// errors that callers distinguish are the domain's: autopilot.ErrGone, autopilot.ErrConflict and
// autopilot.RefusedError. Any other autopilot.ErrKubernetes means that the API server does not answer.
var ErrLeaseLost = errors.New("lease lost")

// wrapError adds what was tried to an error, and converts the API server's errors to the domain's. nil stays nil.
func wrapError(err error, tried string, args ...any) error {
	if err == nil {
		return nil
	}
	tried = fmt.Sprintf(tried, args...)
	switch {
	case isDenied(err):
		return apiError{tried, &autopilot.RefusedError{Message: shorten.Foreign(err.Error())}, err}
	case isGone(err):
		return apiError{tried + ": " + autopilot.ErrGone.Error(), autopilot.ErrGone, err}
	case apierrors.IsConflict(err):
		return apiError{tried + ": " + autopilot.ErrConflict.Error(), autopilot.ErrConflict, err}
	case isRefused(err):
		return apiError{tried, &autopilot.RefusedError{Message: shorten.Foreign(err.Error())}, err}
	}
	return apiError{tried, autopilot.ErrKubernetes, err}
}

type apiError struct {
	tried   string
	meaning error
	err     error
}

// Error returns the API server's text shortened. An admission webhook may refuse with any length, and the API server
// would refuse the status or the event that contains it.
func (e apiError) Error() string { return e.tried + ": " + shorten.Foreign(e.err.Error()) }

// Unwrap returns the domain's errors and the cause.
func (e apiError) Unwrap() []error { return []error{e.meaning, autopilot.ErrKubernetes, e.err} }

// isDenied reports whether an admission webhook or policy has denied the request, or could not be called. It chooses the
// status code itself, so only its text says so (apiserver: admission/plugin/webhook/errors and policy/validating). Any
// other 500 says nothing: the API server may have stored the request.
func isDenied(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	text := status.Status().Message
	return strings.Contains(text, "denied the request") || strings.Contains(text, "denied request") ||
		strings.Contains(text, "failed calling webhook")
}

// isRefused reports whether the API server has refused the request, so that an immediate retry has the same result.
func isRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// isGone reports whether the object does not exist. It accepts only the API server's own 404 about an object, because
// a proxy's "page not found" must not look like a deleted database.
func isGone(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isTestFailed reports whether a test of a JSON patch has failed. The API server answers 422 without a cause then. A
// value that the schema refuses is a 422 as well, but has the field among its causes.
func isTestFailed(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || isDenied(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
