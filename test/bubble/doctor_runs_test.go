// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// withApplyCloud is doctor --allow-apply=Cloud.
func withApplyCloud(o *doctor.Options) {
	o.Allowed.Apply, o.Allowed.Instances = v1alpha1.ApplyCloud, []string{"*/*"}
}

// action is a request that would change an instance.
type action struct {
	instance string
	Enlarge  *struct {
		Size int `json:"size"`
	} `json:"enlarge_volume"`
	Resize *struct {
		SpecCode string `json:"spec_code"`
	} `json:"resize_flavor"`
}

// actions records the requests that would change an instance. The cloud answers them with accept if that is not nil.
func (f *fleet) actions(accept *simcloud.Fault) (seen func() []action) {
	var mu sync.Mutex
	var all []action
	f.breaks(func(r *http.Request) *simcloud.Fault {
		path, isAction := strings.CutSuffix(r.URL.Path, "/action")
		if !isAction || !strings.Contains(path, "/instances/") {
			return nil
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		a := action{instance: path[strings.LastIndex(path, "/")+1:]}
		_ = json.Unmarshal(body, &a)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, a)
		return accept
	})
	return func() []action {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// A size is invalid whether the cloud reads it as the new size or as an increment: it is below the smallest of both.
func TestDoctorTriesImpossibleChangesOfTheNamedInstanceOnly(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		named := f.database("default", "second", simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40}})
		time.Sleep(20 * time.Minute)
		seen := f.actions(nil)
		found := f.examine(t.Context(), "second", withApplyCloud)
		if r := found["rights-change"]; r.State != doctor.OK {
			t.Errorf("%+v", r)
		}
		if len(seen()) != 2 {
			t.Errorf("%d requests, want one for each right", len(seen()))
		}
		for _, a := range seen() {
			if a.instance != named.ID {
				t.Errorf("it asks for a change of %s, want the named one alone", a.instance)
			}
			if a.Enlarge != nil && (a.Enlarge.Size > 0 || a.Enlarge.Size%10 == 0) {
				t.Errorf("it sends the size %d", a.Enlarge.Size)
			}
		}
		for _, without := range []struct {
			name   string
			change func(*doctor.Options)
		}{{"", withApplyCloud}, {"second", nil}} {
			if f.examine(t.Context(), without.name, without.change); len(seen()) != 2 {
				t.Errorf("with the name %q it asks for a change of %+v", without.name, seen()[2:])
			}
		}
	})
}

func TestDoctorFailsIfTheCloudAcceptsAnImpossibleChange(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		seen := f.actions(&simcloud.Fault{Status: http.StatusAccepted, Body: `{"job_id":"job-of-a-surprise"}`})
		r := f.examine(t.Context(), "db", withApplyCloud)["rights-change"]
		if r.State != doctor.Failed || !strings.Contains(r.Text, "job-of-a-surprise") || !strings.Contains(r.Text, "size -1 GB") || !strings.Contains(r.Do, "console") {
			t.Errorf("%+v", r)
		}
		if len(seen()) != 1 {
			t.Errorf("%d requests, want none after the first that the cloud accepts", len(seen()))
		}
	})
}

// Two people run doctor in one project, the second while the first one is in the middle of its run.
func TestTwoDoctorsInOneProjectDoNotRemoveEachOthersObjects(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		for _, delay := range []time.Duration{5 * time.Second, 20 * time.Second, time.Minute} {
			var first, second map[string]doctor.Result
			var running sync.WaitGroup
			running.Go(func() { first = f.examine(t.Context(), "db", nil) })
			time.Sleep(delay)
			running.Go(func() { second = f.examine(t.Context(), "db", nil) })
			running.Wait()
			for _, found := range []map[string]doctor.Result{first, second} {
				if failed := in(found, doctor.Failed); len(failed) > 0 {
					t.Errorf("after %s: %v: %+v", delay, failed, found[failed[0]])
				}
			}
			if r := second["leftovers"]; delay > 10*time.Second && (r.State != doctor.Warning || !strings.Contains(r.Do, "If nobody else runs doctor")) {
				t.Errorf("the second one says %+v", r)
			}
			f.clean(t)
		}
	})
}
