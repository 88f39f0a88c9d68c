// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// unwilling returns a fault: SMN refuses these operations with a message that names no known cause.
func unwilling(operations ...string) func(*http.Request) *simcloud.Fault {
	return func(r *http.Request) *simcloud.Fault {
		if service, operation := simcloud.OperationOf(r); service == "smn" && slices.Contains(operations, operation) {
			return &simcloud.Fault{Status: http.StatusForbidden, Body: `{"request_id":"1","code":"SMN.0069","message":"Not an address of ours"}`}
		}
		return nil
	}
}

// If SMN refuses the topic or the subscription, the service still creates the rules, and the sweep acts on their state. Once SMN
// accepts them, the database is armed.
func TestSweepGrowsADatabaseWhenSMNRefusesIt(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		for db, refused := range map[string][]string{
			"subscribe": {"Subscribe"},
			"all":       {"ListTopics", "ListSubscriptions", "ListTopicSubscriptions", "CreateTopic", "Subscribe"},
		} {
			step(t, db, func(t *testing.T) {
				mend := f.breaks(unwilling(refused...))
				defer mend()
				in := f.database("default", db, plain())
				s := f.start(flags{sweep: 2 * time.Minute})
				defer s.stop()
				var a *v1alpha1.RdsAutopilot
				f.until("there are three rules, and it says why it is not armed", func() bool {
					a = f.autopilot("default", db)
					return a != nil && len(a.Status.Alarms.Rules) == 3 && armedCondition(a).Reason == "SubscriptionRefused" && strings.Contains(armedCondition(a).Message, "SMN.0069 Not an address of ours")
				})
				if have := f.thingsOf(name(a)); isArmed(a) || len(have.rules) != 3 {
					t.Errorf("%+v, rules %+v", armedCondition(a), have.rules)
				}
				f.must(f.sim.SetWorkload(in.ID, simcloud.Workload{UsedGB: 93}))
				f.until("it is grown", func() bool { return f.wanted(db) == 110 })
				f.must(f.sim.ChangeInstance(in.ID, func(i *simcloud.Instance) { i.VolumeGB = 110 }))
				mend()
				// A call takes a moment, or what was read just before our own write would count as read after it.
				defer f.breaks(func(*http.Request) *simcloud.Fault { return &simcloud.Fault{Delay: time.Millisecond} })()
				f.whole(t, f.armedNow("default", db))
				f.expectMended(t, db, "")
			})
		}
	})
}
