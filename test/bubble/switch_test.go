// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"testing"
	"time"

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
