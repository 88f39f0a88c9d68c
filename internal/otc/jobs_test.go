// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// 300 jobs that are checked every 30 seconds leave most of the rate to other requests to RDS, and each of them is read.
func TestRunningJobsLeaveTheRateToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		const jobs = 300
		begin := time.Now()
		for check := range 40 {
			for i := range jobs { // each in a round of its own
				go func() {
					job, err := r.Job(t.Context(), fmt.Sprint("job-", i))
					if known := check > 5; err != nil || known && job.State != autopilot.JobUnknown { // the cloud has none of them
						t.Errorf("check %d of job %d: %+v, %v", check, i, job, err)
					}
				}()
			}
			time.Sleep(30 * time.Second)
		}
		length := time.Since(begin)
		if n, most := r.sim.Count("rds", ""), 2+int(2*length.Seconds()); n > most {
			t.Errorf("%d requests in %s, want at most %d", n, length, most)
		}
		read := make(map[string]int)
		for _, q := range r.sim.Requests() {
			_, id, _ := strings.Cut(q.URI, "id=")
			read[id]++
		}
		for i := range jobs {
			if n := read[fmt.Sprint("job-", i)]; n < 5 {
				t.Errorf("job %d was read %d times in %s", i, n, length)
			}
		}
		time.Sleep(3 * time.Minute) // until the waiting reads have ended
	})
}
