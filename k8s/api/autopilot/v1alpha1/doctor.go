// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DoctorName is how the names of RdsAutopilots begin that rds-autopilot doctor makes.
const DoctorName = "autopilot-doctor-"

// IsDoctors reports whether doctor has made it: it stands for no database.
func (a *RdsAutopilot) IsDoctors() bool {
	return a != nil && a.Annotations[DoctorAnnotation] == "true" && len(a.Name) > len(DoctorName) && a.Name[:len(DoctorName)] == DoctorName
}
