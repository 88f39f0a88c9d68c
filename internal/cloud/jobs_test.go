// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// 300 jobs that are checked every 30 seconds leave most of the rate to the other calls to RDS, and each has its turn.
func TestRunningJobsLeaveTheRateToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		const jobs = 300
		read, begin := make(map[string]int), time.Now()
		for range 40 {
			for i := range jobs {
				id := fmt.Sprint("job-", i)
				job, err := r.Job(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if job.State == autopilot.JobUnknown { // as the cloud says of these
					read[id]++
				}
			}
			time.Sleep(30 * time.Second)
		}
		length := time.Since(begin)
		if n, most := r.sim.Count("rds", ""), int(2*length.Seconds()); n > most {
			t.Errorf("%d requests in %s, want at most %d", n, length, most)
		}
		for i := range jobs {
			if n := read[fmt.Sprint("job-", i)]; n < 5 {
				t.Errorf("job %d was read %d times in %s", i, n, length)
			}
		}
	})
}

func TestFewJobsAreReadAtEachCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		for range 10 {
			for i := range 3 {
				if _, err := r.Job(t.Context(), fmt.Sprint("job-", i)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
		}
		if n := r.sim.Count("rds", ""); n != 30 {
			t.Errorf("%d requests, want 30", n)
		}
	})
}
