// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// The tests of this file follow the book of changes, the switch, and values that are missing. Each is a history that the
// swarm draws too rarely.

// jobs returns the changes of an instance that the cloud has begun, by name.
func (f *fleet) jobs(id, name string) (all []simcloud.Job) {
	for _, j := range f.sim.Jobs() {
		if j.Instance == id && j.Name == name {
			all = append(all, j)
		}
	}
	return all
}

// checkRestarts fails if the cloud began flavor changes of an instance closer than the default cooldown, or more than the
// default budget within a day.
func (f *fleet) checkRestarts(id string, want int) {
	f.t.Helper()
	all := f.jobs(id, "ResizeFlavor")
	for i, j := range all {
		if i > 0 && j.Created.Sub(all[i-1].Created) < time.Hour || i > 1 && j.Created.Sub(all[i-2].Created) < day {
			f.t.Errorf("restart %d to %s at %v is too early", i+1, j.To, j.Created)
			break
		}
	}
	if len(all) != want {
		f.t.Errorf("the cloud began %d flavor changes, want %d", len(all), want)
	}
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

// setSwitch sets spec.autopilot, and removes it after half a second, as the archived operator does.
func (f *fleet) setSwitch(db, value string) {
	f.t.Helper()
	f.patch(f.rdss("default"), db, `{"spec":{"autopilot":`+value+`}}`)
	time.Sleep(500 * time.Millisecond)
	f.patch(f.rdss("default"), db, `{"spec":{"autopilot":null}}`)
}

// often are the flags of a process with short intervals.
var often = flags{sweep: 5 * time.Minute, recheck: 30 * time.Second}

// inFleet runs a test in a fleet, in a bubble.
func inFleet(t *testing.T, s simcloud.Settings, run func(*fleet)) {
	t.Helper()
	level.InBubble(t, func(t *testing.T) { run(newFleet(t, s)) })
}

// armed starts a process and returns an armed database with an Rds.
func (f *fleet) armed(o flags, in simcloud.Instance) simcloud.Instance {
	f.t.Helper()
	f.start(o)
	in = f.database("default", "db", in)
	f.waitArmed("default", "db")
	return in
}

// busy sets the number of vCPUs that a database keeps busy.
func (f *fleet) busy(id string, vcpus float64) {
	f.t.Helper()
	f.must(f.sim.SetWorkload(id, simcloud.Workload{UsedGB: 10, CPUDemand: vcpus}))
}

// uses sets the used space of a database.
func (f *fleet) uses(id string, gb float64) {
	f.t.Helper()
	f.must(f.sim.SetWorkload(id, simcloud.Workload{UsedGB: gb}))
}

// isTrue reports whether a condition of a database is True.
func (f *fleet) isTrue(db, kind string) bool {
	return f.condition(db, kind).Status == metav1.ConditionTrue
}

func (f *fleet) condition(db, kind string) metav1.Condition {
	f.t.Helper()
	if c := meta.FindStatusCondition(f.autopilot("default", db).Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Row 1.
func TestFlavorJobsThatFailCountForBudgetAndCooldown(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		id := f.databaseWithoutRds("default", "db", smallInstance())
		f.start(applyCloud())
		f.waitArmed("default", "db")
		f.must(f.sim.ChangeInstance(id, func(in *simcloud.Instance) { in.FailingJobs, in.Workload.CPUDemand = 1000, 1.95 }))
		time.Sleep(day)
		f.checkRestarts(id, 2)
	})
}

// Row 2.
func TestSwitchIsOnWhenTrueComesWhileTheRulesAreBeingRemoved(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.start(often)
		f.database("default", "db", smallInstance())
		f.patch(f.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		f.waitArmed("default", "db")
		f.setFault(faultOf(simcloud.Fault{Delay: 5 * time.Second}, "DeleteAlarm"))
		f.setSwitch("db", "false")
		time.Sleep(2 * time.Second)
		f.setSwitch("db", "true")
		time.Sleep(time.Hour)
		if a := f.autopilot("default", "db"); !isArmed(a) || len(f.rulesOf("default", "db")) != 3 {
			f.t.Errorf("Armed is %+v, %d rules", armedCondition(a), len(f.rulesOf("default", "db")))
		}
	})
}

// Row 3. Kubernetes' garbage collector deletes the former RdsAutopilot after the Rds was made again.
func TestRdsThatIsMadeAgainWithTrueGetsItsAutopilot(t *testing.T) {
	for _, collected := range []time.Duration{time.Second, 3 * time.Second, 20 * time.Second} {
		t.Run(collected.String(), func(t *testing.T) {
			inFleet(t, simcloud.Settings{}, func(f *fleet) {
				in := f.armed(often, smallInstance())
				former := f.autopilot("default", "db").UID
				f.setFault(faultOf(simcloud.Fault{Delay: 5 * time.Second}, "DeleteAlarm"))
				f.delete(f.rdss("default"), "db")
				time.Sleep(2 * time.Second)
				f.createRds("default", "db", rdsSpec(in, nil), in.ID)
				f.setSwitch("db", "true")
				time.Sleep(collected)
				f.delete(f.raps("default"), "db")
				time.Sleep(time.Hour)
				if a := f.autopilot("default", "db"); a == nil || a.UID == former || !isArmed(a) || len(f.rulesOf("default", "db")) != 3 {
					f.t.Errorf("the RdsAutopilot is %+v, %d rules", a, len(f.rulesOf("default", "db")))
				}
			})
		})
	}
}

// Row 5. The cloud begins a change two minutes after the request, whose answer was lost, or after which the process was
// killed. Meanwhile that flavor looks sold out.
func TestFlavorWithoutAnAnswerIsNotRequestedASecondTime(t *testing.T) {
	for name, killed := range map[string]bool{"lost answer": false, "kill": true} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, simcloud.Settings{}, func(f *fleet) {
				o := applyCloud()
				var isDead atomic.Bool
				var requests []string
				alive := func(send http.RoundTripper) http.RoundTripper {
					return roundTrip(func(r *http.Request) (*http.Response, error) {
						if isDead.Load() {
							return nil, errDead
						}
						if !strings.HasSuffix(r.URL.Path, "/action") {
							return send.RoundTrip(r)
						}
						body, err := io.ReadAll(r.Body)
						f.must(err)
						requests = append(requests, string(body))
						isDead.Store(killed)
						return nil, errDead
					})
				}
				o.kube, o.transport = alive(f.kube), alive(f.sim)
				id := f.databaseWithoutRds("default", "db", smallInstance())
				s := f.start(o)
				f.waitArmed("default", "db")
				f.busy(id, 3.95)
				f.waitUntil("a flavor is requested", func() bool { return len(requests) > 0 })
				const first = "rds.mysql.n1.xlarge.2"
				setStatus := func(status string) {
					for _, zone := range f.sim.Zones() {
						f.sim.SetFlavorStatus(first, zone, status)
					}
				}
				setStatus(simcloud.FlavorSoldOut)
				if killed {
					s.stop()
					isDead.Store(false)
					killed = false
					f.start(o)
				}
				time.Sleep(2 * time.Minute)
				setStatus(simcloud.FlavorNormal)
				f.applyFlavor(id, first)
				time.Sleep(20 * time.Minute)
				for _, body := range requests {
					if !strings.Contains(body, first) {
						f.t.Errorf("%s is requested before the outcome of %s is known, or within the cooldown", body, first)
					}
				}
				for _, ch := range f.autopilot("default", "db").Status.Changes {
					if ch.By != v1alpha1.ByAutopilot {
						f.t.Errorf("a change of ours is recorded as %s → %s by %s", ch.From, ch.To, ch.By)
					}
				}
			})
		})
	}
}

// Row 14. Three databases, as many as --max-flavor-changes allows, are turned off as soon as their change is stored.
func TestChangeThatIsTurnedOffBeforeItsRequestHoldsNoPlace(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		load := simcloud.Instance{Flavor: twoVCPUs, VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10, CPUDemand: 1.95}}
		off := map[string]bool{}
		o := often
		o.kube = onOpen{f, v1alpha1.KindFlavor, func(db string) {
			if db != "last" && !off[db] {
				off[db] = true
				f.patch(f.rdss("default"), db, `{"spec":{"autopilot":false}}`)
			}
		}}
		f.start(o)
		for _, db := range []string{"a", "b", "c"} {
			f.database("default", db, load)
		}
		f.waitUntil("three changes are stored", func() bool { return len(off) == 3 })
		f.database("default", "last", load)
		began := time.Now()
		f.waitUntil("the fourth database changes", func() bool { return f.requested("last").flavor != twoVCPUs })
		if took := time.Since(began); took > time.Hour {
			f.t.Errorf("the fourth database waits for %v", took)
		}
		for db := range off {
			if f.requested(db).flavor != twoVCPUs || f.isTrue(db, v1alpha1.ConditionProgressing) {
				f.t.Errorf("%s is off and requests %+v, Progressing %+v", db, f.requested(db), f.condition(db, v1alpha1.ConditionProgressing))
			}
		}
	})
}

// Row 20.
func TestUsedSpaceIsJudgedByTheSizeAtItsTime(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		in := f.armed(flags{sweep: time.Minute, recheck: 30 * time.Second}, instance(twoVCPUs, 100, 80))
		time.Sleep(20 * time.Minute)
		_, err := f.personClient().Enlarge(f.t.Context(), in.ID, 110)
		f.must(err)
		f.patch(f.rdss("default"), "db", `{"spec":{"volumesize":110}}`)
		f.waitUntil("the cloud has 110 GB", func() bool { now, _ := f.sim.Instance(in.ID); return now.VolumeGB == 110 })
		time.Sleep(5 * time.Second)
		f.uses(in.ID, 96)
		time.Sleep(30 * time.Minute)
		if n := len(f.events("default", "db", "ReadOnly")); n > 0 {
			f.t.Errorf("%d events ReadOnly at 96 of 110 GB", n)
		}
		if got := f.requested("db").volumeGB; got != 120 {
			f.t.Errorf("the service requests %d GB, want 120", got)
		}
	})
}

// Row 22. Only the percentage has data, and percentage × size is a little less than the limit.
func TestReadOnlyLimitIsComparedWithATolerance(t *testing.T) {
	for size, want := range map[int]int{190: 220} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			inFleet(t, simcloud.Settings{HideStorageFull: true, Odd: simcloud.Odd{NoUsedSpace: true}}, func(f *fleet) {
				in := f.armed(flags{sweep: time.Minute, recheck: 30 * time.Second}, instance(twoVCPUs, size, float64(size)/2))
				f.uses(in.ID, readOnlyAt(size))
				time.Sleep(20 * time.Minute)
				if got := f.requested("db").volumeGB; got != want || len(f.events("default", "db", "ReadOnly")) == 0 {
					f.t.Errorf("the service requests %d GB, want %d; %d events ReadOnly", got, want, len(f.events("default", "db", "ReadOnly")))
				}
			})
		})
	}
}

// Row 23. The data is ten minutes late.
func TestDatabaseInStorageFullGrowsBeforeItsDataShowsIt(t *testing.T) {
	inFleet(t, simcloud.Settings{MetricDelay: 10 * time.Minute}, func(f *fleet) {
		in := f.armed(flags{sweep: time.Minute, recheck: 30 * time.Second}, instance(twoVCPUs, 100, 70))
		time.Sleep(30 * time.Minute)
		f.uses(in.ID, 96)
		time.Sleep(4 * time.Minute)
		if got := f.requested("db").volumeGB; got != 120 || f.hasDecision("db", "BelowThreshold") {
			f.t.Errorf("the service requests %d GB, want 120; the decisions are %+v", got, f.autopilot("default", "db").Status.Decisions)
		}
	})
}

// Row 24.
func TestMeasurementOfTheFutureMakesADatabaseReadOnlyNow(t *testing.T) {
	inFleet(t, simcloud.Settings{HideStorageFull: true}, func(f *fleet) {
		in := f.database("default", "db", instance(twoVCPUs, 100, 50))
		f.patch(f.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		f.createAutopilot("default", "db", `{"mode":"Recommend"}`)
		f.start(flags{sweep: time.Minute})
		f.waitArmed("default", "db")
		f.loseMessages()
		ahead := map[string]simcloud.SeriesFault{"rds048_disk_used_size": {Future: 4*time.Minute + 50*time.Second, All: true}}
		f.must(f.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) { in.SeriesFaults, in.Workload.UsedGB = ahead, 96 }))
		f.waitUntil("it is read-only", func() bool {
			r := f.autopilot("default", "db").Status.ReadOnly
			if r != nil && r.SinceTime.After(time.Now()) {
				f.t.Errorf("at %v, it has been read-only since %v", time.Now(), r.SinceTime)
			}
			return r != nil
		})
	})
}

// busyDatabase returns an armed database with an Rds whose CPU is busy, and its next flavor, which is applied.
func (f *fleet) changedFlavor(cpu float64) (in simcloud.Instance, next string) {
	f.t.Helper()
	in = f.database("default", "db", smallInstance())
	f.waitArmed("default", "db")
	f.busy(in.ID, cpu)
	f.waitUntil("a flavor is requested", func() bool { return f.requested("db").flavor != twoVCPUs })
	next = f.requested("db").flavor
	f.applyFlavor(in.ID, next)
	return in, next
}

// applyFlavor changes an instance as the operator does, and waits until it is done.
func (f *fleet) applyFlavor(id, flavor string) {
	f.t.Helper()
	_, err := f.personClient().Resize(f.t.Context(), id, flavor)
	f.must(err)
	time.Sleep(20 * time.Minute)
}

// Row 6.
func TestFlavorThatIsTakenBackIsContestedForSevenDays(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.start(flags{sweep: 20 * time.Minute, recheck: 30 * time.Second})
		in, next := f.changedFlavor(1.95)
		time.Sleep(2 * time.Hour)
		f.patch(f.rdss("default"), "db", `{"spec":{"flavorref":"`+twoVCPUs+`"}}`)
		time.Sleep(28 * time.Hour)
		if f.requested("db").flavor != twoVCPUs {
			f.t.Errorf("the service requests %s again while the cloud has it", next)
		}
		f.applyFlavor(in.ID, twoVCPUs)
		time.Sleep(5 * day)
		if got := f.requested("db").flavor; got != twoVCPUs || f.condition("db", v1alpha1.ConditionContested).Status != metav1.ConditionTrue {
			f.t.Errorf("the service requests %s, Contested is %+v", got, f.condition("db", v1alpha1.ConditionContested))
		}
		time.Sleep(3 * day)
		if got := f.requested("db").flavor; got != next {
			f.t.Errorf("after 8 days, the service requests %s, want %s", got, next)
		}
	})
}

// Row 7.
func TestInstanceWithAMinorVersionGetsALargerFlavor(t *testing.T) {
	for _, flavor := range []string{twoVCPUs, twoVCPUs + ".ha"} {
		t.Run(flavor, func(t *testing.T) {
			inFleet(t, simcloud.Settings{MinorVersions: true}, func(f *fleet) {
				f.start(often)
				in := instance(flavor, 100, 10)
				in.Workload.CPUDemand = 1.95
				f.database("default", "db", in)
				time.Sleep(2 * time.Hour)
				if got := f.requested("db").flavor; got == flavor {
					f.t.Errorf("the service requests no larger flavor; the decisions are %+v", f.autopilot("default", "db").Status.Decisions)
				}
			})
		})
	}
}

// Row 8.
func TestFlavorThatTheAPIServerRefusedCountsForNothing(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		in := f.armed(often, smallInstance())
		f.kube.SetAdmit(func(w simkube.Write) error {
			if w.New.GetKind() == "Rds" && w.Manager == "rds-autopilot" {
				return errors.New("no changes today")
			}
			return nil
		})
		f.busy(in.ID, 1.95)
		f.waitUntil("the refusal is reported", func() bool { return f.hasDecision("db", "Refused") })
		const persons = "rds.mysql.n1.large.2"
		f.patch(f.rdss("default"), "db", `{"spec":{"flavorref":"`+persons+`"}}`)
		f.busy(in.ID, 0.5)
		f.applyFlavor(in.ID, persons)
		time.Sleep(2 * time.Hour)
		a := f.autopilot("default", "db")
		for _, ch := range a.Status.Changes {
			if ch.By == v1alpha1.ByAutopilot && ch.Outcome != "Refused" && ch.Outcome != "Withdrawn" {
				f.t.Errorf("a change that was never requested is recorded: %+v", ch)
			}
		}
		if c := f.condition("db", v1alpha1.ConditionContested); c.Status == metav1.ConditionTrue {
			f.t.Errorf("Contested is %+v", c)
		}
		f.kube.SetAdmit(nil)
		f.busy(in.ID, 1.95)
		began := time.Now()
		f.waitUntil("a flavor is requested", func() bool { return f.requested("db").flavor != persons })
		if took := time.Since(began); took > 45*time.Minute {
			f.t.Errorf("the service waits for %v", took)
		}
	})
}

// Row 9.
func TestFormerRdsOfThatNameSaysNothingAboutTheNextOne(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		in := f.armed(often, smallInstance())
		f.setSwitch("db", "false")
		f.waitOff("db", "NotEnabled")
		f.delete(f.rdss("default"), "db")
		time.Sleep(10 * time.Minute)
		f.createRds("default", "db", rdsSpec(in, nil), in.ID)
		f.waitArmed("default", "db")
	})
}

// Row 10.
func TestNothingOfADatabaseThatIsOffIsPending(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		s := f.start(often)
		in := f.database("default", "db", instance(twoVCPUs, 100, 50))
		f.waitArmed("default", "db")
		f.patch(f.rdss("default"), "db", `{"spec":{"volumesize":200}}`)
		f.uses(in.ID, 93)
		f.waitUntil("the stalled change is reported", func() bool { return f.hasDecision("db", "Stalled") })
		time.Sleep(2 * time.Hour)
		before := s.metric("rds_autopilot_held_changes")
		f.patch(f.rdss("default"), "db", `{"spec":{"autopilot":false}}`)
		time.Sleep(20 * time.Minute)
		if after := s.metric("rds_autopilot_held_changes"); before == 0 || after != 0 {
			f.t.Errorf("held_changes was %g and is %g", before, after)
		}
		a := f.autopilot("default", "db")
		for _, c := range a.Status.Conditions {
			if c.Type != v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue {
				f.t.Errorf("off, and %s is %+v", c.Type, c)
			}
		}
		if stored := text(a.Status); strings.Contains(stored, `"200"`) && strings.Contains(stored, "unfulfilled") {
			f.t.Errorf("off, and the size of another writer is kept: %s", stored)
		}
	})
}

// Row 11.
func TestContestEndsWhenAPersonChoosesALargerFlavor(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.start(often)
		in, next := f.changedFlavor(1.95)
		const smaller, larger = "rds.mysql.n1.large.2", "rds.mysql.n1.2xlarge.4"
		f.patch(f.rdss("default"), "db", `{"spec":{"flavorref":"`+smaller+`"}}`)
		f.applyFlavor(in.ID, smaller)
		f.waitUntil("it is contested", func() bool { return f.isTrue("db", v1alpha1.ConditionContested) })
		f.patch(f.rdss("default"), "db", `{"spec":{"flavorref":"`+larger+`"}}`)
		f.applyFlavor(in.ID, larger)
		time.Sleep(2 * time.Hour)
		if c := f.condition("db", v1alpha1.ConditionContested); c.Status == metav1.ConditionTrue {
			f.t.Errorf("after %s, Contested is %+v", next, c)
		}
	})
}

// Row 12.
func TestNothingIsInProgressAfterTheInstanceHasLeftTheCloud(t *testing.T) {
	inFleet(t, simcloud.Settings{EnlargeDuration: 30 * time.Minute}, func(f *fleet) {
		s := f.start(often)
		in := f.database("default", "db", smallInstance())
		f.waitArmed("default", "db")
		f.uses(in.ID, 93)
		f.waitUntil("it grows", func() bool { return f.isTrue("db", v1alpha1.ConditionProgressing) })
		f.sim.RemoveInstance(in.ID)
		time.Sleep(time.Hour)
		for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionLimited, v1alpha1.ConditionContested} {
			if c := f.condition("db", kind); c.Status == metav1.ConditionTrue {
				f.t.Errorf("%s is %+v", kind, c)
			}
		}
		if n := s.metric("rds_autopilot_conditions"); n != 0 {
			f.t.Errorf("the gauges of conditions count %g", n)
		}
	})
}

// Row 13.
func TestReplicaOfUnknownSizeDecidesNothing(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		f.start(often)
		in := f.database("default", "db", instance("rds.pg.n1.large.4", 100, 10))
		f.addInstance(simcloud.Instance{Flavor: "rds.pg.n1.2xlarge.4.rr", VolumeGB: 100, ReplicaOf: in.ID, Omits: []string{"cpu", "mem"}})
		f.busy(in.ID, 1.95)
		time.Sleep(2 * time.Hour)
		if f.requested("db").flavor == in.Flavor {
			f.t.Errorf("no flavor is requested; the decisions are %+v", f.autopilot("default", "db").Status.Decisions)
		}
	})
}

// Rows 4, 15 and 16: a series that cannot be read or cannot be true counts for itself alone.
func TestFaultySeriesAffectsOnlyWhatNeedsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		metric string
		fault  simcloud.SeriesFault
		load   simcloud.Workload
		want   request
	}{
		"used space NaN":      {"rds048_disk_used_size", simcloud.SeriesFault{Value: "NaN", All: true}, simcloud.Workload{UsedGB: 93}, request{110, twoVCPUs}},
		"used space text":     {"rds048_disk_used_size", simcloud.SeriesFault{Value: `"text"`, All: true}, simcloud.Workload{UsedGB: 93}, request{110, twoVCPUs}},
		"used space refused":  {"rds048_disk_used_size", simcloud.SeriesFault{Refused: true}, simcloud.Workload{UsedGB: 93}, request{110, twoVCPUs}},
		"used space negative": {"rds048_disk_used_size", simcloud.SeriesFault{Value: "-5", All: true}, simcloud.Workload{UsedGB: 93}, request{110, twoVCPUs}},
		"CPU 5000 %":          {"rds001_cpu_util", simcloud.SeriesFault{Value: "5000", All: true}, simcloud.Workload{UsedGB: 10, CPUDemand: 1.95}, request{100, twoVCPUs}},
		"CPU 1e300 %":         {"rds001_cpu_util", simcloud.SeriesFault{Value: "1e300", All: true}, simcloud.Workload{UsedGB: 10, CPUDemand: 1.95}, request{100, twoVCPUs}},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, simcloud.Settings{}, func(f *fleet) {
				f.loseMessages()
				f.start(often)
				in := f.database("default", "db", smallInstance())
				other := f.database("default", "other", smallInstance())
				f.waitArmed("default", "db")
				f.waitArmed("default", "other")
				f.must(f.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) {
					in.SeriesFaults, in.Workload = map[string]simcloud.SeriesFault{tc.metric: tc.fault}, tc.load
				}))
				f.uses(other.ID, 93)
				time.Sleep(time.Hour)
				if got := f.requested("db"); got != tc.want {
					f.t.Errorf("the service requests %+v, want %+v; decisions: %+v", got, tc.want, f.autopilot("default", "db").Status.Decisions)
				}
				if got := f.requested("other").volumeGB; got != 110 {
					f.t.Errorf("of another database it requests %d GB", got)
				}
			})
		})
	}
}

// Row 15. A batch that contains the series of one database is refused.
func TestBatchThatIsRefusedIsReadOneByOne(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			inFleet(t, simcloud.Settings{}, func(f *fleet) {
				f.loseMessages()
				var ids []string
				for i := range 4 {
					ids = append(ids, f.database("default", fmt.Sprintf("db-%d", i), smallInstance()).ID)
				}
				f.start(often)
				f.waitUntil("all are armed", func() bool { return f.areArmed(4) })
				f.setFault(func(r *http.Request) *simcloud.Fault {
					if _, operation := simcloud.OperationOf(r); operation != "BatchMetricData" {
						return nil
					}
					body, err := io.ReadAll(r.Body)
					f.must(err)
					r.Body = io.NopCloser(bytes.NewReader(body))
					if bytes.Contains(body, []byte(ids[0])) {
						return &simcloud.Fault{Status: status}
					}
					return nil
				})
				for _, id := range ids {
					f.uses(id, 93)
				}
				time.Sleep(30 * time.Minute)
				for i := range ids {
					if got := f.requested(fmt.Sprintf("db-%d", i)).volumeGB; i > 0 && got != 110 {
						f.t.Errorf("of database %d, the service requests %d GB", i, got)
					}
				}
			})
		})
	}
}

// Row 17.
func TestSizeThatBecomesKnownIsNoChange(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		in := f.database("default", "db", simcloud.Instance{Flavor: twoVCPUs, VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Omits: []string{"size"}})
		f.start(often)
		time.Sleep(20 * time.Minute)
		f.must(f.sim.ChangeInstance(in.ID, func(in *simcloud.Instance) { in.Omits = nil }))
		time.Sleep(20 * time.Minute)
		if changes := f.autopilot("default", "db").Status.Changes; len(changes) > 0 {
			f.t.Errorf("recorded are %+v", changes)
		}
	})
}

// Row 19.
func TestSizeOfAPersonIsNoStepOfOurs(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		in := f.database("default", "db", instance(twoVCPUs, 100, 50))
		f.patch(f.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		f.createAutopilot("default", "db", `{"apply":"Cloud"}`)
		f.start(applyCloud())
		f.waitArmed("default", "db")
		f.uses(in.ID, 93)
		f.patch(f.rdss("default"), "db", `{"spec":{"volumesize":150}}`)
		f.waitUntil("the cloud has the person's size", func() bool { now, _ := f.sim.Instance(in.ID); return now.VolumeGB == 150 })
		time.Sleep(5 * time.Minute)
		f.uses(in.ID, 137)
		time.Sleep(20 * time.Minute)
		if got := f.requested("db").volumeGB; got != 160 {
			f.t.Errorf("the service requests %d GB, want 160; changes: %+v", got, f.autopilot("default", "db").Status.Changes)
		}
	})
}

// Row 25.
func TestConflictOfVersionsIsNoFailure(t *testing.T) {
	inFleet(t, simcloud.Settings{}, func(f *fleet) {
		in := f.database("default", "db", smallInstance())
		conflicts, seen := 0, ""
		o := often
		o.kube = roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") {
				body, err := io.ReadAll(r.Body)
				f.must(err)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte("StatusNotStored")) {
					seen = string(body)
				}
				if bytes.Contains(body, []byte("GrowVolume")) && conflicts == 0 { // another writer is faster
					conflicts++
					f.patch(f.raps("default"), "db", `{"metadata":{"labels":{"a":"b"}}}`)
				}
			}
			return f.kube.RoundTrip(r)
		})
		s := f.start(o)
		f.waitArmed("default", "db")
		f.uses(in.ID, 93)
		f.waitUntil("it grows", func() bool { return f.requested("db").volumeGB == 110 })
		if n := s.metric("rds_autopilot_rounds_failed_total"); conflicts != 1 || seen != "" || n > 0 || len(f.events("default", "db", "StatusNotStored")) > 0 {
			f.t.Errorf("%d conflicts, %g failed rounds; a write reports %q", conflicts, n, seen)
		}
	})
}
