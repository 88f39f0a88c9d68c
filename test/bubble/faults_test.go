// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	team     = "team" // the namespace of the database, which the process watches
	cooldown = 10 * time.Minute
	policy   = `"flavor":{"cooldownSeconds":600,"maxChangesPerDay":3}}`
)

// story is a short life of the service with one database.
type story struct {
	name         string
	before, turn func(*scene) // a process starts between them, and is armed; without before, turn starts it
	operator     bool         // an operator applies the Rds
	lasts        time.Duration
	restores     bool // in the end, all is as it was before turn
}

var stories = []story{
	{"arm", nil, func(s *scene) {
		withRds(s)
		s.setID("") // its operator sets it later
		time.AfterFunc(time.Minute, func() { s.setID(s.ids[0]) })
		s.start()
	}, false, 90 * time.Minute, false},
	{"grow by the operator", withRds, loads(93, 0.1), true, 100 * time.Minute, false},
	{"grow by the cloud", withoutRds, loads(93, 0.1), false, 100 * time.Minute, false},
	{"a flavor by the operator", withRds, loads(10, 1.95), true, 2 * time.Hour, false},
	{"a flavor by the cloud", withoutRds, loads(10, 1.95), false, 2 * time.Hour, false},
	{"both by the operator", withRds, loads(93, 1.95), true, 150 * time.Minute, false},
	{"both by the cloud", withoutRds, loads(93, 1.95), false, 150 * time.Minute, false},
	{"off", withRds, func(s *scene) { s.setOn("false") }, false, 80 * time.Minute, false},
	{"off while it grows", withRds, func(s *scene) { // no operator applies the Rds
		loads(93, 0.1)(s)
		time.AfterFunc(40*time.Minute, func() { s.setOn("false") })
	}, false, 140 * time.Minute, false},
	{"the instance leaves", withRds, func(s *scene) {
		loads(93, 0.1)(s)
		time.AfterFunc(40*time.Minute, func() { s.sim.RemoveInstance(s.ids[0]) })
	}, false, 140 * time.Minute, false},
	{"off and on", withRds, func(s *scene) {
		s.setOn("false")
		time.AfterFunc(2*time.Second, func() { s.setOn("true") })
	}, false, 90 * time.Minute, true},
	{"mode Off", withRds, func(s *scene) { s.change(func() { s.mode = v1alpha1.ModeOff }) }, false, 80 * time.Minute, false},
	{"the Rds is deleted", withRds, func(s *scene) { s.delete(s.rdss(team), "db") }, false, 80 * time.Minute, false},
	{"the Rds is made again", withRds, func(s *scene) {
		s.delete(s.rdss(team), "db")
		time.AfterFunc(time.Minute, s.makeRds)
	}, false, 90 * time.Minute, true},
	{"the Rds is made again after off", withRds, func(s *scene) { // what a former Rds said is nothing to the next one
		s.setOn("false")
		time.AfterFunc(10*time.Minute, func() {
			s.delete(s.rdss(team), "db")
			in, _ := s.sim.Instance(s.ids[0])
			s.createRds(team, "db", rdsSpec(in, nil), in.ID)
		})
	}, false, 100 * time.Minute, false},
	{"both are made again", withRds, func(s *scene) {
		s.delete(s.rdss(team), "db")
		time.AfterFunc(2*time.Second, s.makeRds)
		time.AfterFunc(5*time.Second, func() { s.delete(s.raps(team), "db") }) // as Kubernetes' garbage collector does
	}, false, 90 * time.Minute, true},
	{"the RdsAutopilot is deleted", withRds, func(s *scene) {
		s.setOn("null")
		s.delete(s.raps(team), "db")
	}, false, 80 * time.Minute, false},
	{"both are deleted", withRds, func(s *scene) {
		s.delete(s.rdss(team), "db")
		time.Sleep(time.Second) // else it may be made again, and Kubernetes' garbage collector would delete it
		s.delete(s.raps(team), "db")
	}, false, 80 * time.Minute, false},
	{"another instance", withRds, func(s *scene) {
		s.ids = append(s.ids, s.addInstance(smallInstance()).ID)
		s.setID(s.ids[1])
	}, false, 2 * time.Hour, false},
	{"another object", withRds, func(s *scene) {
		in, _ := s.sim.Instance(s.ids[0])
		s.createRds(team, "other", rdsSpec(in, true), in.ID)
	}, false, 90 * time.Minute, false},
	{"another public URL", withRds, func(s *scene) {
		s.routes.by["second.example.com"] = s.fleet
		s.change(func() { s.public = "https://second.example.com" })
	}, false, 90 * time.Minute, false},
	{"the ConfigMap is deleted", withRds, func(s *scene) {
		maps := s.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
		s.delete(maps.Namespace(ownNamespace), k8s.TopicConfigMap)
	}, false, 90 * time.Minute, true},
	{"the topic is deleted", withRds, func(s *scene) { s.sim.RemoveTopic(s.topic()["topicURN"]) }, false, 90 * time.Minute, true},
	{"the subscription is deleted", withRds, func(s *scene) { s.sim.Unsubscribe(s.sim.Subscriptions()[0].URN) }, false, 90 * time.Minute, true},
	{"a rule is disabled", withRds, func(s *scene) {
		s.must(s.personClient().EnableRule(s.t.Context(), s.rulesOf(team, "db")[v1alpha1.MetricStorage].ID, false))
	}, false, 90 * time.Minute, true},
	{"a rule is deleted", withRds, func(s *scene) { s.sim.RemoveRule(s.rulesOf(team, "db")[v1alpha1.MetricCPU].ID) }, false, 90 * time.Minute, true},
	{"rights are withdrawn", withRds, func(s *scene) {
		s.withdrawn.Store(true)
		loads(93, 0.1)(s)
		time.AfterFunc(30*time.Minute, func() { s.withdrawn.Store(false) })
	}, true, 150 * time.Minute, false},
}

// events are the reasons of events that a story without a fault causes.
var events = map[string]string{
	"grow by the operator": "GrowVolume", "a flavor by the cloud": "ChangeFlavor", "a rule is disabled": "Repaired", "a rule is deleted": "Repaired",
}

// seconds are what goes wrong beside the fault of a call that requests a change.
var seconds = []struct {
	name string
	set  func(*scene)
}{
	{"the job fails", func(s *scene) { s.failJob() }},
	{"the job fails unseen", func(s *scene) {
		s.failJob()
		s.sim.Configure(func(x *simcloud.Settings) {
			x.Refuse = map[string]simcloud.Refusal{"ShowJob": {Status: 404, Code: "DBS.200044", Message: "The job does not exist."}}
		})
	}},
	{"the job takes 40 minutes", func(s *scene) {
		s.sim.Configure(func(x *simcloud.Settings) { x.EnlargeDuration, x.ResizeDuration = 40*time.Minute, 40*time.Minute })
	}},
	{"the operator is late", func(s *scene) {
		s.operator.Pause()
		time.AfterFunc(time.Hour, s.operator.Resume)
	}},
	{"the leader changes", func(s *scene) { s.leaderChanges.Store(true) }},
	{"lists are a step old", func(s *scene) { s.oldLists.Store(true) }},
}

func (s *scene) failJob() {
	s.must(s.sim.ChangeInstance(s.ids[0], func(in *simcloud.Instance) { in.FailingJobs = 1 }))
}

// setOn sets spec.autopilot.
func (s *scene) setOn(value string) { s.patch(s.rdss(team), "db", `{"spec":{"autopilot":`+value+`}}`) }

// setID sets the ID of the instance in the Rds, as its operator does.
func (s *scene) setID(id string) { s.patch(s.rdss(team), "db", `{"status":{"id":"`+id+`"}}`) }

// change starts the process with other flags.
func (s *scene) change(set func()) {
	s.stop()
	set()
	s.start()
}

// loads returns a turn that sets the load of the database.
func loads(usedGB, cpu float64) func(*scene) {
	return func(s *scene) { s.must(s.sim.SetWorkload(s.ids[0], simcloud.Workload{UsedGB: usedGB, CPUDemand: cpu})) }
}

// withRds adds a database with an Rds.
func withRds(s *scene) {
	in := smallInstance()
	in.Name = "db"
	s.ids = append(s.ids, s.addInstance(in).ID)
	s.createAutopilot(team, "db", "{"+policy)
	s.makeRds()
}

func (s *scene) makeRds() {
	in, _ := s.sim.Instance(s.ids[0])
	s.createRds(team, "db", rdsSpec(in, true), in.ID)
}

func withoutRds(s *scene) {
	in := smallInstance()
	in.Name = "db"
	s.ids = append(s.ids, s.addInstance(in).ID)
	s.createAutopilot(team, "db", `{"apply":"Cloud","instanceID":"`+s.ids[0]+`",`+policy)
}

// TestEveryFaultAtEveryCall runs each story without a fault, and again with each fault at each of its calls. The end must be
// the same. A call that requests a change is also combined with what else may go wrong with a change. make test runs a part
// that does not change from run to run, make soak all, and FAULT one, such as "grow by the cloud/EnlargeVolume 1/answer lost",
// or those of one story.
func TestEveryFaultAtEveryCall(t *testing.T) {
	if os.Getenv("FAULT") == "" && !level.IsSoak(t) {
		level.Short(t)
	}
	began := time.Now()
	var runs, missed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d runs with a fault, %d of them without the call, after %v", runs.Load(), missed.Load(), time.Since(began).Round(time.Second))
	})
	for _, st := range stories {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			if one := os.Getenv("FAULT"); one != "" && one != st.name && !strings.HasPrefix(one, st.name+"/") {
				t.Skip("FAULT is another story")
			}
			var want []string
			var calls []call
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, "", fault{}, nil)
				s.run(st, 0)
				want, calls = s.end(), s.calls
				if diff := cmp.Diff(s.before, want); st.restores && diff != "" {
					t.Errorf("not as before (-before +after):\n%s", diff)
				}
				if reason, ok := events[st.name]; ok {
					if _, ok = s.events.Load(reason); !ok {
						t.Errorf("there is no event %s", reason)
					}
				}
				if st.restores {
					want = s.before
				}
			})
			run := func(c call, f fault, second string, also func(*scene), judge func(s *scene, want []string) string) {
				name := strings.TrimSuffix(strings.Join([]string{st.name, c.name, f.name, second}, "/"), "/")
				if !isChosen(t, st.name, name, c.changes && also == nil) {
					return
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						s := newScene(t, c.name, f, also)
						if also == nil {
							s.run(st, 0)
						} else {
							s.run(st, 4*time.Hour)
						}
						runs.Add(1)
						if !s.fired {
							missed.Add(1)
						}
						if wrong := judge(s, want); wrong != "" {
							t.Errorf("FAULT='%s':\n%s", name, wrong)
						}
					})
				})
			}
			for _, c := range calls {
				for _, f := range faults {
					if !f.atReads && c.isRead {
						continue
					}
					run(c, f, "", nil, judgeEnd)
					for _, second := range seconds {
						if c.changes && (second.name != "the operator is late" || st.operator) {
							run(c, f, second.name, second.set, judgePair)
						}
					}
				}
			}
		})
	}
}

// isChosen reports whether a run is one of FAULT, of make soak, or of the part that make test runs: single faults of requests, and
// a hundredth of the others, by their name.
func isChosen(t *testing.T, story, name string, isRequest bool) bool {
	if one := os.Getenv("FAULT"); one != "" {
		return one == story || one == name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return level.IsSoak(t) || isRequest || h.Sum32()%100 == 0
}

// judgeEnd compares the end of a story with that without the fault.
func judgeEnd(s *scene, want []string) string {
	return cmp.Diff(want, withoutLost(s.end()))
}

// withoutLost leaves out a change that left no trace and was requested again. "A kill between the write and the request costs
// one cooldown, and one of the day's changes."
func withoutLost(end []string) []string {
	return slices.DeleteFunc(end, func(line string) bool {
		what, isLost := strings.CutSuffix(line, ": "+string(v1alpha1.StateLost))
		again := func(s v1alpha1.ChangeState) bool { return slices.Contains(end, what+": "+string(s)) }
		return isLost && (again(v1alpha1.StateCompleted) || again(v1alpha1.StateRequested))
	})
}

// judgePair judges what two faults must not break: the instance has the size and flavor that it needs, it was changed once, no
// change is pending, and the conditions are as without the faults. The cloud has begun our flavor changes within the limits.
func judgePair(s *scene, want []string) string {
	compared := func(lines []string) []string {
		return slices.DeleteFunc(lines, func(line string) bool {
			isJob := strings.HasPrefix(line, "job ") && !strings.HasSuffix(line, ": Completed")
			isEnded := strings.HasPrefix(line, "change ") && !strings.HasSuffix(line, "Requested") && !strings.HasSuffix(line, "Started") && !strings.HasSuffix(line, "Completed")
			return isJob || isEnded
		})
	}
	wrong := cmp.Diff(compared(slices.Clone(want)), compared(s.end()))
	var last time.Time
	n := 0
	for _, j := range s.sim.Jobs() {
		if s.operator == nil && j.Name == "ResizeFlavor" {
			if n++; n > 3 || n > 1 && j.Created.Sub(last) < cooldown {
				wrong += fmt.Sprintf("flavor change %d begins %v after the one before", n, j.Created.Sub(last))
			}
			last = j.Created
		}
	}
	return wrong
}
