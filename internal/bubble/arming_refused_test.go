// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// unwilling is an SMN that refuses some calls for good, in words of its own.
func unwilling(operations ...string) func(*http.Request) *otcsim.Fault {
	return func(r *http.Request) *otcsim.Fault {
		if service, operation := otcsim.OperationOf(r); service == "smn" && slices.Contains(operations, operation) {
			return &otcsim.Fault{Status: http.StatusForbidden, Body: `{"request_id":"1","code":"SMN.0069","message":"Not an address of ours"}`}
		}
		return nil
	}
}

// Where SMN does nothing for us there are rules all the same, and the sweep acts on what they say. Once SMN does, all is
// as if nothing had been.
func TestADatabaseThatSMNWantsNothingOfIsGrownByTheSweep(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
		f.runCloud()
		for db, refused := range map[string][]string{
			"subscribe": {"Subscribe"},
			"topic":     {"CreateTopic"},
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
					return a != nil && len(a.Status.Alarms.Rules) == 3 && strings.Contains(armedCondition(a).Message, "SMN.0069 Not an address of ours")
				})
				if have := f.thingsOf(name(a)); isArmed(a) || len(have.rules) != 3 {
					t.Errorf("%+v, rules %+v", armedCondition(a), have.rules)
				}
				f.must(f.sim.SetWorkload(in.ID, otcsim.Workload{UsedGB: 93}))
				f.until("it is grown", func() bool { return f.wanted(db) == 110 })
				f.must(f.sim.ChangeInstance(in.ID, func(i *otcsim.Instance) { i.VolumeGB = 110 }))
				mend()
				// A call takes a moment, or what was read just before our own write would count as read after it.
				defer f.breaks(func(*http.Request) *otcsim.Fault { return &otcsim.Fault{Delay: time.Millisecond} })()
				f.whole(t, f.armedNow("default", db))
				f.expectMended(t, db, "")
			})
		}
	})
}

// What SMN refuses takes no place of those that it accepts, and is in no way hidden by them.
func TestRefusedSubscriptionsKeepNobodyElseFromBeingArmed(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
		f.runCloud()
		mend := f.breaks(func(r *http.Request) *otcsim.Fault {
			if strings.Contains(r.URL.Path, "_refused-") {
				return unwilling("Subscribe")(r)
			}
			return nil
		})
		defer mend()
		s := f.start(flags{sweep: 2 * time.Minute})
		tries := func() (n int) {
			for _, r := range f.sim.Requests() {
				if r.Operation == "Subscribe" && r.Status == http.StatusForbidden {
					n++
				}
			}
			return n
		}
		const many = 40
		for i := range many {
			f.database("default", fmt.Sprint("refused-", i), plain())
		}
		f.until("more was refused than is ever accepted within ten minutes", func() bool { return tries() > 160 })
		f.database("default", "accepted", plain())
		f.whole(t, f.armedNow("default", "accepted"))
		for i := range many {
			a := f.autopilot("default", fmt.Sprint("refused-", i))
			if m := armedCondition(a).Message; !strings.Contains(m, "SMN.0069 Not an address of ours") || len(a.Status.Alarms.Rules) != 3 {
				t.Errorf("%s says %q, rules %+v", a.Name, m, a.Status.Alarms.Rules)
			}
		}
		mend()
		f.until("they are armed once SMN accepts them", func() bool { return f.armed(many + 1) })
		s.stop()
	})
}
