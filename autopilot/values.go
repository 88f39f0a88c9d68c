// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Gigabytes returns the size in a record, or 0 if the text is not a number.
func Gigabytes(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// Micro returns a time with the precision of a MicroTime in JSON.
func Micro(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}

// Seconds returns a time with the precision of a Time in JSON.
func Seconds(t time.Time) *metav1.Time {
	s := metav1.NewTime(t.Truncate(time.Second))
	return &s
}
