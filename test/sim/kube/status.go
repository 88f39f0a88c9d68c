// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errNoSuchPath means that no resource has this path. The HTTP server answers it as text, not as a status object.
var errNoSuchPath = errors.New("404 page not found")

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

func notFound(k *kind, name string) error { return apierrors.NewNotFound(k.groupResource(), name) }

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func methodNotAllowed(k *kind, method string) error {
	return apierrors.NewMethodNotSupported(k.groupResource(), method)
}

func conflict(k *kind, name string) error {
	return apierrors.NewConflict(k.groupResource(), name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// unprocessable returns the error for a JSON patch that cannot be applied. It names no field.
func unprocessable(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: err.Error(),
	}}
}

// reply answers with the status object of an error.
func reply(w http.ResponseWriter, err error) {
	if errors.Is(err, errNoSuchPath) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // fails only if the client has left
}
