// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DoctorName is the prefix of the names of RdsAutopilots that rds-autopilot doctor creates.
const DoctorName = "autopilot-doctor-"

// IsDoctors reports whether doctor has created the RdsAutopilot. Such an object stands for no database.
func (a *RdsAutopilot) IsDoctors() bool {
	return a != nil && a.Annotations[DoctorAnnotation] == "true" && len(a.Name) > len(DoctorName) && a.Name[:len(DoctorName)] == DoctorName
}
