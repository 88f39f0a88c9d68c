// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// setSwitch sets spec.autopilot, and removes it after half a second, as the archived operator does.
func (f *fleet) setSwitch(db, value string) {
	f.t.Helper()
	f.patch(f.rdss("default"), db, `{"spec":{"autopilot":`+value+`}}`)
	time.Sleep(500 * time.Millisecond)
	f.patch(f.rdss("default"), db, `{"spec":{"autopilot":null}}`)
}

// The cloud needs seconds to delete the rules, and Kubernetes' garbage collector deletes an RdsAutopilot after its Rds was
// made again. The absent value of an Rds says nothing, whatever a former one of that name said.
func TestLastExplicitSwitchHoldsWhileRulesAreBeingRemoved(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.start(flags{})
		again := map[string]time.Duration{"again-1": time.Second, "again-3": 3 * time.Second, "again-20": 20 * time.Second}
		instances, former := map[string]simcloud.Instance{}, map[string]*v1alpha1.RdsAutopilot{}
		for _, db := range []string{"again-1", "again-3", "again-20", "switched", "former"} {
			instances[db] = f.database("default", db, smallInstance())
			former[db] = f.waitArmed("default", db)
		}
		f.patch(f.rdss("default"), "switched", `{"spec":{"autopilot":null}}`)
		f.setFault(faultOf(simcloud.Fault{Delay: 5 * time.Second}, "DeleteAlarm"))

		f.setSwitch("switched", "false")
		time.Sleep(2 * time.Second)
		f.setSwitch("switched", "true")
		for db, collected := range again {
			f.delete(f.rdss("default"), db)
			time.Sleep(2 * time.Second)
			f.createRds("default", db, rdsSpec(instances[db], nil), instances[db].ID)
			f.setSwitch(db, "true")
			time.Sleep(collected)
			f.delete(f.raps("default"), db)
		}
		f.setSwitch("former", "false")
		f.waitOff("former", "NotEnabled")
		f.delete(f.rdss("default"), "former")
		time.Sleep(10 * time.Minute)
		f.createRds("default", "former", rdsSpec(instances["former"], nil), instances["former"].ID)

		time.Sleep(time.Hour)
		for db := range instances {
			a := f.autopilot("default", db)
			if a == nil || !isArmed(a) || len(f.rulesOf("default", db)) != 3 {
				t.Errorf("%s: the RdsAutopilot is %+v, %d rules", db, a, len(f.rulesOf("default", db)))
			} else if _, isAnother := again[db]; isAnother != (a.UID != former[db].UID) {
				t.Errorf("%s: another RdsAutopilot: %t", db, !isAnother)
			}
		}
	})
}

// onOpen is a transport that calls a function as soon as the API server has stored a change of ours, before the service
// knows it.
type onOpen struct {
	*fleet
	kind v1alpha1.ChangeKind
	call func(name string)
}

func (o onOpen) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := o.kube.RoundTrip(r)
	if err != nil || r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/status") {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	o.must(err)
	res.Body = io.NopCloser(bytes.NewReader(body))
	var stored unstructured.Unstructured
	o.must(json.Unmarshal(body, &stored.Object))
	if slices.ContainsFunc(openChanges(stored.Object), func(c openChange) bool { return c.kind == string(o.kind) }) {
		o.call(stored.GetName())
	}
	return res, nil
}

// Three databases, as many as --max-flavor-changes allows, are turned off as soon as their change is stored. One is turned
// off after a person's size has stalled, and the instance of one leaves the cloud.
func TestNothingOfADatabaseThatIsOffOrGoneIsPending(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		busy := simcloud.Instance{Flavor: twoVCPUs, VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10, CPUDemand: 1.95}}
		isOff := map[string]bool{"last": true}
		o := often
		o.kube = onOpen{f, v1alpha1.KindFlavor, func(db string) {
			if !isOff[db] {
				isOff[db] = true
				f.patch(f.rdss("default"), db, `{"spec":{"autopilot":false}}`)
			}
		}}
		s := f.start(o)
		for _, db := range []string{"a", "b", "c"} {
			f.database("default", db, busy)
		}
		f.waitUntil("three changes are stored", func() bool { return len(isOff) == 4 })
		last := f.database("default", "last", busy)
		began := time.Now()
		f.waitUntil("the fourth database changes", func() bool { return f.requested("last").flavor != twoVCPUs })
		if took := time.Since(began); took > time.Hour {
			t.Errorf("the fourth database waits for %v", took)
		}
		_, err := f.personClient().Resize(f.t.Context(), last.ID, f.requested("last").flavor, nil)
		f.must(err)

		stalled, gone := f.database("default", "stalled", smallInstance()), f.database("default", "gone", smallInstance())
		f.waitArmed("default", "stalled")
		f.patch(f.rdss("default"), "stalled", `{"spec":{"volumesize":200}}`)
		f.uses(stalled.ID, 93)
		f.uses(gone.ID, 93)
		f.waitUntil("the stalled change is reported", func() bool { return f.hasDecision("stalled", "Stalled") })
		f.waitUntil("the other one grows", func() bool { return f.isTrue("gone", v1alpha1.ConditionProgressing) })
		f.waitUntil("they are held", func() bool { return s.metric("rds_autopilot_held_changes") > 0 })
		f.patch(f.rdss("default"), "stalled", `{"spec":{"autopilot":false}}`)
		f.sim.RemoveInstance(gone.ID)
		time.Sleep(time.Hour)
		for _, db := range []string{"a", "b", "c", "stalled", "gone"} {
			for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited, v1alpha1.ConditionContested} {
				if f.isTrue(db, kind) {
					t.Errorf("%s: %s is %+v", db, kind, f.autopilot("default", db).Status.Conditions)
				}
			}
		}
		for db := range isOff {
			if db != "last" && f.requested(db).flavor != twoVCPUs {
				t.Errorf("%s is off and requests %+v", db, f.requested(db))
			}
		}
		if held, n := s.metric("rds_autopilot_held_changes"), s.metric("rds_autopilot_conditions"); held != 0 || n != 0 {
			t.Errorf("%g changes are held, and %g conditions are counted", held, n)
		}
	})
}
