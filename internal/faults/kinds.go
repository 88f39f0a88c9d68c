// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

// Kinds is every kind of fault, in pairs where there are two: failed before it was applied, and failed after. delay is how
// long a slow request takes.
func Kinds(delay time.Duration) []otcsim.Fault {
	var kinds []otcsim.Fault
	for _, applied := range []bool{false, true} {
		kinds = append(kinds,
			otcsim.Fault{Status: http.StatusInternalServerError, Apply: applied},
			otcsim.Fault{Status: http.StatusServiceUnavailable, Apply: applied},
			Busy(time.Second, applied),
			otcsim.Fault{Hang: true, Apply: applied},
		)
	}
	return append(kinds, otcsim.Fault{Delay: delay}, otcsim.Fault{Cut: true})
}

// Busy is 429 with Retry-After, in whole seconds.
func Busy(after time.Duration, applied bool) otcsim.Fault {
	seconds := strconv.Itoa(int(after.Round(time.Second) / time.Second))
	return otcsim.Fault{Status: http.StatusTooManyRequests, Apply: applied, Header: http.Header{"Retry-After": {seconds}}}
}
