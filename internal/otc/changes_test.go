// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// A change may have begun if its request was sent, also if the answer is missing.
func TestChangeReturnsWhetherTheRequestWasSent(t *testing.T) {
	larger := v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "110"}
	other := v1alpha1.Change{Kind: v1alpha1.KindFlavor, From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4"}
	notRequested := func(err error) bool { return errors.Is(err, autopilot.ErrNotRequested) }
	for name, tc := range map[string]struct {
		failing string // operation that gets no answer
		intent  v1alpha1.Change
		status  string
		is      func(error) bool
		posts   int
	}{
		"the instance cannot be read": {"ListInstances", larger, "", notRequested, 0},
		"no answer to the request": {"EnlargeVolume", larger, "", func(err error) bool {
			_, refused := errors.AsType[*autopilot.RefusedError](err)
			return err != nil && !refused && !errors.Is(err, autopilot.ErrNotRequested) && !errors.Is(err, autopilot.ErrConflict)
		}, 1},
		"not ready":                       {"", larger, simcloud.StatusModifying, notRequested, 0},
		"turned off":                      {"", v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "120"}, "", notRequested, 0},
		"the instance has another flavor": {"", other, "", func(err error) bool { return notRequested(err) && errors.Is(err, autopilot.ErrConflict) }, 0},
		"an intent of another version":    {"", v1alpha1.Change{Kind: "Throughput"}, "", notRequested, 0},
		"requested":                       {"", larger, "", func(err error) bool { return err == nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReads(t, 5, simcloud.Options{Fault: func(q *http.Request) *simcloud.Fault {
					if _, op := simcloud.OperationOf(q); op == tc.failing {
						return &simcloud.Fault{Hang: true}
					}
					return nil
				}})
				id := r.add(t, 1)[0]
				if tc.status != "" {
					if err := r.sim.ChangeInstance(id, func(in *simcloud.Instance) { in.Status = tc.status }); err != nil {
						t.Fatal(err)
					}
				}
				confirm := func(context.Context) error {
					if r.sim.Count("rds", "ListInstances") == 0 {
						t.Error("the last look comes before a read")
					}
					if name == "turned off" {
						return autopilot.ErrConflict
					}
					return nil
				}
				job, err := r.Change(t.Context(), id, tc.intent, confirm)
				if !tc.is(err) || (job != "") != (err == nil) {
					t.Errorf("job %q, error %v", job, err)
				}
				n := r.sim.Count("rds", "EnlargeVolume") + r.sim.Count("rds", "ResizeFlavor")
				if n < tc.posts || tc.posts == 0 && n > 0 {
					t.Errorf("%d requests for a change, want %d", n, tc.posts)
				}
			})
		})
	}
}

// The list of instances may be older than the end of a job, so the caller must know when the job ended.
func TestJobHasItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{Settings: simcloud.Settings{EnlargeDuration: time.Minute}})
		id := r.add(t, 1)[0]
		begin := time.Now()
		job, err := r.Change(t.Context(), id, v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "110"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if j, err := r.Job(t.Context(), job); err != nil || j.State != autopilot.JobRunning || !j.EndTime.IsZero() {
			t.Errorf("running: %+v, %v", j, err)
		}
		time.Sleep(2 * time.Minute)
		j, err := r.Job(t.Context(), job)
		if took := j.EndTime.Sub(begin); err != nil || j.State != autopilot.JobDone || took < 59*time.Second || took > 61*time.Second {
			t.Errorf("done: %+v, after %s, %v", j, took, err)
		}
	})
}

// The codes and their status are those of RDS api: error_codes.rst, of captured answers, and of the Terraform provider.
func TestRefusalHasTheReasonOfItsCode(t *testing.T) {
	for _, tc := range []struct {
		status int
		codes  []string
		want   autopilot.Reason
	}{
		{http.StatusBadRequest, []string{"DBS.280450", "DBS.280239", "DBS.200053", "DBS.200054", "dbs.280239"}, autopilot.ReasonSoldOut},
		{http.StatusConflict, []string{"DBS.200011", "DBS.200452", "DBS.280816", "DBS.999999", ""}, autopilot.ReasonInstanceBusy},
		{http.StatusForbidden, []string{"DBS.212033"}, autopilot.ReasonInstanceBusy},
		{http.StatusForbidden, []string{"RDS.0011", ""}, autopilot.ReasonNotPermitted},
		{http.StatusBadRequest, []string{"DBS.200018", "DBS.200080", "DBS.200086", "DBS.200452", "DBS.200463", "DBS.200611",
			"DBS.201014", "DBS.201015", "DBS.201206", "DBS.280011", "DBS.280343", "DBS.280816"}, autopilot.ReasonInstanceBusy},
		{http.StatusConflict, []string{"DBS.200316"}, autopilot.ReasonStorageFull},
		{http.StatusForbidden, []string{"DBS.200046", "RDS.5035"}, autopilot.ReasonQuotaExceeded},
		{http.StatusPaymentRequired, []string{""}, autopilot.ReasonPaymentRequired},
		{http.StatusForbidden, []string{"CBC.30000010"}, autopilot.ReasonPaymentRequired},
		{http.StatusBadRequest, []string{"DBS.200306", "DBS.200308", ""}, autopilot.ReasonCloudRefused},
	} {
		for _, code := range tc.codes {
			err := refusal(&Error{Service: "rds", Status: tc.status, Code: code, Message: "The cloud's reason."})
			refused, ok := errors.AsType[*autopilot.RefusedError](err)
			if !ok || refused.Reason != tc.want {
				t.Errorf("%d %s: %+v, want %s", tc.status, code, refused, tc.want)
			}
		}
	}
}

// 300 jobs that are checked every 30 seconds leave most of the rate to other requests to RDS, and each of them is read.
func TestRunningJobsLeaveTheRateToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		const jobs = 300
		begin := time.Now()
		for check := range 20 {
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
		time.Sleep(3 * time.Minute) // until the waiting reads have ended
	})
}
