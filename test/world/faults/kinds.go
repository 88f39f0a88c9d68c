// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strconv"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// Kinds returns every kind of fault, before and after the request is applied where both are possible. delay is the time that a slow
// request takes.
func Kinds(delay time.Duration) []simcloud.Fault {
	var kinds []simcloud.Fault
	for _, applied := range []bool{false, true} {
		kinds = append(kinds,
			simcloud.Fault{Status: http.StatusInternalServerError, Apply: applied},
			simcloud.Fault{Status: http.StatusServiceUnavailable, Apply: applied},
			Busy(time.Second, applied),
			simcloud.Fault{Hang: true, Apply: applied},
		)
	}
	return append(kinds, simcloud.Fault{Delay: delay}, simcloud.Fault{Cut: true})
}

// Busy returns the answer 429 with Retry-After in whole seconds.
func Busy(after time.Duration, applied bool) simcloud.Fault {
	seconds := strconv.Itoa(int(after.Round(time.Second) / time.Second))
	return simcloud.Fault{Status: http.StatusTooManyRequests, Apply: applied, Header: http.Header{"Retry-After": {seconds}}}
}
