// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// applyCloud returns the flags of an administrator who allows apply: Cloud for every instance.
func applyCloud() flags {
	return flags{
		sweep: 5 * time.Minute, recheck: 30 * time.Second,
		allowed: autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}},
	}
}

// databaseWithoutRds adds an instance and an RdsAutopilot that names it, and returns the ID.
func (f *fleet) databaseWithoutRds(namespace, name string, in simcloud.Instance) string {
	f.t.Helper()
	in.Name = name
	id := f.addInstance(in).ID
	f.createAutopilot(namespace, name, `{"apply":"Cloud","instanceID":"`+id+`"}`)
	return id
}

// The operator of a database is gone. The cloud is asked only once the object has no Rds beside it.
func TestObjectWithAnInstanceIDBesideAnRdsIsInvalid(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.createAutopilot("default", "db", `{}`)
		in := f.database("default", "db", smallInstance())
		f.start(applyCloud())
		f.checkAlarms(f.waitArmed("default", "db"))
		f.patch(f.raps("default"), "db", `{"spec":{"apply":"Cloud","instanceID":"`+in.ID+`"}}`)
		f.uses(in.ID, 93)
		a := f.waitNotArmed("default", "db", "PolicyInvalid")
		time.Sleep(30 * time.Minute)
		if now, _ := f.sim.Instance(in.ID); now.VolumeGB != 100 || f.requested("db").volumeGB != 100 || len(f.sim.Rules()) > 0 {
			t.Errorf("%+v: the cloud has %d GB, and the Rds requests %d", armedCondition(a), now.VolumeGB, f.requested("db").volumeGB)
		}
		f.delete(f.rdss("default"), "db")
		f.waitUntil("the cloud has 110 GB", func() bool { now, _ := f.sim.Instance(in.ID); return now.VolumeGB == 110 })
		f.checkAlarms(f.waitArmed("default", "db"))
	})
}

// Two namespaces, two installations in one cluster, and two clusters in one project name the same instance. One manages
// it, the other says who does and changes nothing. If that one is turned off, the other takes over within a sweep.
func TestOneObjectManagesAnInstanceWhereverItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		start  func(first *fleet) (second *fleet)
		atOnce bool
	}{
		"two namespaces": {func(f *fleet) *fleet { f.start(applyCloud()); return f }, false},
		"two installations": {func(f *fleet) *fleet {
			other := &fleet{t: f.t, kube: f.kube, admin: f.admin, sim: f.sim, fault: f.fault, routes: f.routes, own: "second",
				public: "https://second.example.com"}
			f.routes.by["second.example.com"] = other
			f.namespace("second")
			o := applyCloud()
			o.namespaces = []string{"default"}
			f.start(o)
			o.namespaces = []string{"other"}
			other.start(o)
			return other
		}, true},
		"two clusters": {func(f *fleet) *fleet {
			other := f.addCluster()
			f.start(applyCloud())
			other.start(applyCloud())
			other.namespace("other")
			return other
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, simcloud.Settings{}, func(f *fleet) {
				f.namespace("other")
				second := tc.start(f)
				id := f.addInstance(smallInstance()).ID
				spec := `{"apply":"Cloud","instanceID":"` + id + `"}`
				f.createAutopilot("default", "db", spec)
				if !tc.atOnce {
					f.waitArmed("default", "db")
				}
				second.createAutopilot("other", "also", spec)
				type object struct {
					*fleet
					namespace, name string
				}
				owner, other := object{f, "default", "db"}, object{second, "other", "also"}
				f.waitUntil("one is armed and the other claimed", func() bool {
					a, b := owner.autopilot(owner.namespace, owner.name), other.autopilot(other.namespace, other.name)
					if isArmed(b) && tc.atOnce {
						owner, other, a, b = other, owner, b, a
					}
					return isArmed(a) && armedCondition(b).Reason == "InstanceClaimed"
				})
				a := other.autopilot(other.namespace, other.name)
				if text := armedCondition(a).Message; !strings.HasPrefix(text, owner.namespace+"/"+owner.name) {
					t.Errorf("the message is %q", text)
				}
				f.uses(id, 93)
				time.Sleep(3 * time.Hour)
				in, _ := f.sim.Instance(id)
				if n := f.sim.Count("rds", "EnlargeVolume"); in.VolumeGB != 110 || n != 1 || len(f.sim.Rules()) != 3 {
					t.Errorf("%d GB after %d requests, %d rules", in.VolumeGB, n, len(f.sim.Rules()))
				}
				if n := len(other.events(other.namespace, other.name, "InstanceClaimed")); n != 1 {
					t.Errorf("%d events InstanceClaimed", n)
				}
				owner.patch(owner.raps(owner.namespace), owner.name, `{"spec":{"mode":"Off"}}`)
				off := time.Now()
				other.waitArmed(other.namespace, other.name)
				if took := time.Since(off); took > 6*time.Minute {
					t.Errorf("the other takes over after %v", took)
				}
			})
		})
	}
}

// A database that is full when it is turned on is grown as soon as its first rule exists, and also if Cloud Eye creates
// none.
func TestFullDatabaseIsGrownAsSoonAsItsClaimIsDecided(t *testing.T) {
	for reason, settings := range map[string]simcloud.Settings{"AlarmsInPlace": {}, "QuotaExceeded": {RuleQuota: -1}} {
		t.Run(reason, func(t *testing.T) {
			inFleet(t, settings, func(f *fleet) {
				f.start(applyCloud())
				id := f.databaseWithoutRds("default", "db", instance(twoVCPUs, 100, 93))
				f.waitUntil("its condition is set", func() bool {
					return armedCondition(f.autopilot("default", "db")).Reason == reason
				})
				if reason == "QuotaExceeded" { // no rule says who manages it, so the smaller name does
					f.createAutopilot("default", "second", `{"apply":"Cloud","instanceID":"`+id+`","storage":{"stepGB":100}}`)
					a := f.waitNotArmed("default", "second", "InstanceClaimed")
					if text := armedCondition(a).Message; !strings.HasPrefix(text, "default/db manages") {
						t.Errorf("the message is %q", text)
					}
				}
				began := time.Now()
				f.waitUntil("it has grown", func() bool { in, _ := f.sim.Instance(id); return in.VolumeGB == 110 })
				if took := time.Since(began); took > 40*time.Minute {
					t.Errorf("it took %v", took)
				}
				time.Sleep(time.Hour)
				// The second one says so once in its condition, and once in its decision.
				if in, _ := f.sim.Instance(id); in.VolumeGB != 110 || len(f.events("default", "second", "InstanceClaimed")) > 2 {
					t.Errorf("%d GB an hour later, events %+v", in.VolumeGB, f.events("default", "second", "InstanceClaimed"))
				}
			})
		})
	}
}

// --allowed-instances holds for an Rds as well, and with apply: Operator.
func TestInstanceThatIsNotListedIsNotArmed(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		other := f.namespace("other")
		in := f.database("default", "db", smallInstance())
		f.createRds(other, "rds", rdsSpec(in, true), in.ID)
		f.createAutopilot(other, "alone", `{"apply":"Cloud","instanceID":"`+in.ID+`"}`)
		allowed := autopilot.Allowed{Apply: v1alpha1.ApplyOperator, Instances: []string{"default/*"}}
		f.start(flags{sweep: 5 * time.Minute, allowed: allowed})
		f.waitArmed("default", "db")
		for db, reason := range map[string]string{"rds": "--allowed-instances", "alone": "--allow-apply"} {
			a := f.waitNotArmed(other, db, "NotAllowed")
			if text := armedCondition(a).Message; !strings.Contains(text, reason) || len(f.rulesOf(other, db)) > 0 {
				t.Errorf("%s: %q, %+v", db, text, f.rulesOf(other, db))
			}
		}
	})
}
