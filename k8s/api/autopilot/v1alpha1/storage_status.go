// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UsedSpace is a measurement of the used space of a volume.
type UsedSpace struct {
	// gb is the used space in GB, with one decimal.
	GB string `json:"gb"`
	// time is that of the datapoint in Cloud Eye.
	Time metav1.Time `json:"time"`
}

// ReadOnly is the state of a database that the cloud does not let write.
type ReadOnly struct {
	// sinceTime is when the measurement that showed it was taken, or when the instance was first seen in STORAGE FULL.
	SinceTime metav1.Time `json:"sinceTime"`
}
