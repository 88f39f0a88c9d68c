// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"strings"
)

// DoctorName is the prefix of the names of RdsAutopilots that rds-autopilot doctor creates.
const DoctorName = "autopilot-doctor-"

// IsDoctors reports whether doctor has created the RdsAutopilot. Such an object stands for no database. One with our
// finalizer does: its alarms would stay for ever if its owner's annotation hid it from the controller.
func (a *RdsAutopilot) IsDoctors() bool {
	return a != nil && a.Annotations[DoctorAnnotation] == "true" && strings.HasPrefix(a.Name, DoctorName) &&
		a.Name != DoctorName &&
		!slices.Contains(a.Finalizers, Finalizer)
}
