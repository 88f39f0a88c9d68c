package k8s

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a caller tells apart. Everything else is an API server that could not be reached or refused us.
var (
	// ErrGone: the object, or the namespace it would be in, does not exist any more.
	ErrGone = errors.New("gone")
	// ErrConflict: the object was written since it was read; read it again and decide anew.
	ErrConflict = errors.New("written by someone else meanwhile")
	// ErrChanged: the field no longer has the value, or the object the uid, that was decided on.
	ErrChanged = errors.New("not what was decided on any more")
	// ErrRefused: the API server understood a patch and does not allow it: a policy, a webhook, RBAC or the schema.
	ErrRefused = errors.New("refused")
	// ErrLeaseLost: another replica leads, or the API server could not be reached for too long.
	ErrLeaseLost = errors.New("lease lost")
)

// told wraps an API server's error with what was tried.
func told(err error, tried string, args ...any) error {
	if err == nil {
		return nil
	}
	tried = fmt.Sprintf(tried, args...)
	switch {
	case isGone(err):
		return fmt.Errorf("%s: %w: %w", tried, ErrGone, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", tried, ErrConflict, err)
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
