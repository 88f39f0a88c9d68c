// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	day      = 24 * time.Hour
	twoVCPUs = "rds.mysql.n1.large.4" // 2 vCPUs, 8 GB
)

// bothWays are those in which the autopilot asks the cloud itself.
var bothWays = map[string]bool{"with an Rds": true, "without an Rds": false}

// cloudWay is a world without an operator, in which the autopilot asks the cloud itself.
type cloudWay struct {
	*fleet
	withRds bool
	ids     map[string]string
}

// allowed are the flags of an administrator who allows that.
func allowed() flags {
	return flags{sweep: 5 * time.Minute, recheck: 30 * time.Second, allowed: autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}}}
}

func newCloudWay(t *testing.T, withRds bool, settings simcloud.Settings) *cloudWay {
	t.Helper()
	w := &cloudWay{fleet: newFleet(t, settings), withRds: withRds, ids: map[string]string{}}
	w.runCloud()
	return w
}

// add makes a database in the default namespace, with an Rds that asks for nothing new, or without one.
func (w *cloudWay) add(name string, in simcloud.Instance, policy string) {
	w.t.Helper()
	spec := `{"apply":"Cloud"` + cmp.Or(policy, "") + `}`
	if w.withRds {
		w.own("default", name, spec)
		w.ids[name] = w.database("default", name, in).ID
		return
	}
	in.Name = name
	in, err := w.sim.AddInstance(in)
	w.must(err)
	w.ids[name] = in.ID
	w.own("default", name, `{"instanceID":"`+in.ID+`",`+spec[1:])
}

func (w *cloudWay) bear(name string, load simcloud.Workload) {
	w.t.Helper()
	w.must(w.sim.SetWorkload(w.ids[name], load))
}

func (w *cloudWay) in(name string) simcloud.Instance {
	in, _ := w.sim.Instance(w.ids[name])
	return in
}

func (w *cloudWay) rap(name string) *v1alpha1.RdsAutopilot {
	w.t.Helper()
	a := w.autopilot("default", name)
	if a == nil {
		w.t.Fatalf("there is no RdsAutopilot %s", name)
	}
	return a
}

// begun are the changes that the cloud was asked for and has begun.
func (w *cloudWay) begun(operation string) (n int) {
	for _, r := range w.sim.Requests() {
		if r.Operation == operation && r.Status == 202 {
			n++
		}
	}
	return n
}

// hasDone checks that the status records exactly these changes, newest first.
func (w *cloudWay) hasDone(name string, want ...string) {
	w.t.Helper()
	var got []string
	s := w.rap(name).Status
	for _, ch := range s.Changes {
		got = append(got, fmt.Sprintf("%s %s→%s %s", ch.By, ch.From, ch.To, ch.Outcome))
	}
	if !slices.Equal(got, want) || s.Pending != nil {
		w.t.Errorf("%s: the changes are %v, pending is %+v, want %v", name, got, s.Pending, want)
	}
	if !w.withRds {
		return
	}
	if spec, in := w.rdsSpec(name), w.in(name); spec["volumesize"] != int64(in.VolumeGB) || spec["flavorref"] != in.Flavor {
		w.t.Errorf("%s: the Rds asks for %v GB, %v, and the cloud has %d GB, %s", name, spec["volumesize"], spec["flavorref"], in.VolumeGB, in.Flavor)
	}
}
