// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	requested, started, refused   = v1alpha1.StateRequested, v1alpha1.StateStarted, v1alpha1.StateRefused
	completed, failed, lost       = v1alpha1.StateCompleted, v1alpha1.StateFailed, v1alpha1.StateLost
	replaced, reverted, withdrawn = v1alpha1.StateReplaced, v1alpha1.StateReverted, v1alpha1.StateWithdrawn
	volume, flavor                = v1alpha1.KindVolume, v1alpha1.KindFlavor
	none, before                  = v1alpha1.ChangeState(""), v1alpha1.ChangeState("before")
	anHour                        = time.Hour
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(noon().Add(-d))) }

// in returns a change of ours in a state, requested an hour ago and, if it has ended, ended half an hour ago.
func in(state v1alpha1.ChangeState, kind v1alpha1.ChangeKind) v1alpha1.Change {
	ch := v1alpha1.Change{Kind: kind, By: v1alpha1.ByAutopilot, From: "100", To: "110", State: state, RequestTime: ago(anHour)}
	switch state {
	case none:
		ch.RequestTime = nil
	case requested:
	case started:
		ch.StartTime, ch.JobID = ago(50*time.Minute), "j1"
	case refused:
		ch.Refusal = &v1alpha1.Refusal{Count: 2, Time: *ago(time.Minute), Reason: "QuotaExceeded", NextTime: ago(0)}
	default:
		ch.EndTime = *ago(anHour / 2)
	}
	return ch
}

func states() []v1alpha1.ChangeState {
	return []v1alpha1.ChangeState{none, requested, started, refused, completed, failed, lost, replaced, reverted, withdrawn}
}

// facts returns everything that can be seen of a change, by name. Each is seen alone.
func facts() map[string]func(*Seen, *v1alpha1.Change) {
	event := func(e Event) func(*Seen, *v1alpha1.Change) { return func(s *Seen, _ *v1alpha1.Change) { s.Event = e } }
	reset := func(s *Seen, _ *v1alpha1.Change) { s.SpecRead = true }
	return map[string]func(*Seen, *v1alpha1.Change){
		"nothing":  func(*Seen, *v1alpha1.Change) {},
		"allowed":  event(Allowed),
		"unsent":   event(Unsent),
		"rejected": event(Rejected),
		"rejected after no answer": func(s *Seen, ch *v1alpha1.Change) {
			s.Event, ch.Refusal = Rejected, &v1alpha1.Refusal{Reason: NoAnswer}
		},
		"rejected, an older attempt": func(s *Seen, _ *v1alpha1.Change) { s.Event, s.RequestTime = Rejected, ago(2*anHour) },
		"accepted":                   event(Accepted),
		"accepted, an older attempt": func(s *Seen, _ *v1alpha1.Change) { s.Event, s.RequestTime = Accepted, ago(2*anHour) },
		"unneeded":                   event(Unneeded),
		"overtaken":                  event(Overtaken),
		"has":                        func(s *Seen, _ *v1alpha1.Change) { s.Has = true },
		"has it after all":           func(s *Seen, _ *v1alpha1.Change) { s.Has, s.IsNew, s.IsNewest = true, true, true },
		"has it, and a newer entry":  func(s *Seen, _ *v1alpha1.Change) { s.Has, s.IsNew = true, true },
		"has it after all, a day later": func(s *Seen, ch *v1alpha1.Change) {
			s.Has, s.IsNew, s.IsNewest, ch.EndTime = true, true, true, *ago(25 * anHour)
		},
		"changing": func(s *Seen, _ *v1alpha1.Change) { s.IsChanging = true },
		"changing before the request": func(s *Seen, ch *v1alpha1.Change) {
			s.IsChanging, ch.RequestTime, s.RequestTime = true, ago(-time.Second), ago(-time.Second)
		},
		"reset, seen":                   func(s *Seen, ch *v1alpha1.Change) { reset(s, ch); ch.SeenTime = ago(time.Minute) },
		"reset, seen, changing":         func(s *Seen, ch *v1alpha1.Change) { reset(s, ch); s.IsChanging, ch.SeenTime = true, ago(time.Minute) },
		"reset, patch accepted":         func(s *Seen, ch *v1alpha1.Change) { reset(s, ch); s.WasAccepted = true },
		"reset, never seen":             reset,
		"reset, never seen, a minute":   func(s *Seen, ch *v1alpha1.Change) { reset(s, ch); ch.RequestTime = ago(time.Minute) },
		"reset in an old cache":         func(s *Seen, ch *v1alpha1.Change) { ch.SeenTime = ago(time.Minute) },
		"idle":                          func(s *Seen, _ *v1alpha1.Change) { s.Idle = Patience },
		"idle, and its job runs":        func(s *Seen, _ *v1alpha1.Change) { s.Idle, s.JobRuns = Patience, true },
		"idle for 14 minutes":           func(s *Seen, _ *v1alpha1.Change) { s.Idle = Patience - time.Second },
		"job over, at from":             func(s *Seen, _ *v1alpha1.Change) { s.JobIsOver, s.IsAtFrom = true, true },
		"job over, changing":            func(s *Seen, _ *v1alpha1.Change) { s.JobIsOver, s.JobHasFailed, s.IsChanging = true, true, true },
		"job failed":                    func(s *Seen, _ *v1alpha1.Change) { s.JobIsOver, s.JobHasFailed = true, true },
		"job failed, list too old":      func(s *Seen, _ *v1alpha1.Change) { s.JobHasFailed = true },
		"job over, at something else":   func(s *Seen, _ *v1alpha1.Change) { s.JobIsOver = true },
		"smaller":                       func(s *Seen, _ *v1alpha1.Change) { s.IsSmaller, s.IsLast = true, true },
		"smaller, not last":             func(s *Seen, _ *v1alpha1.Change) { s.IsSmaller = true },
		"other in the cloud, spec ours": func(s *Seen, _ *v1alpha1.Change) { s.HasLeft, s.SpecHas, s.IsLast = true, true, true },
		"other in the cloud, a day late": func(s *Seen, ch *v1alpha1.Change) {
			s.HasLeft, s.SpecHas, s.IsLast, ch.EndTime = true, true, true, *ago(25 * anHour)
		},
		"other in the cloud": func(s *Seen, _ *v1alpha1.Change) { s.HasLeft, s.IsLast = true, true },
	}
}

// moves returns where each fact moves a change, for each state. A key ends with the party and the kind if not all of them
// move. All that is missing must change nothing.
func moves() map[string]v1alpha1.ChangeState {
	all := map[string]v1alpha1.ChangeState{
		" allowed": requested, "Refused allowed": requested, "Requested allowed, Cloud Volume": requested,
		"Requested overtaken, Operator Volume": lost, "Requested overtaken, Cloud Volume": lost,
		"Requested unsent": before, "Requested rejected": refused, "Requested accepted, Cloud": started,
		"Requested changing, Cloud Flavor": started, "Requested reset, seen, changing, Cloud Flavor": started,
		"Requested job over, changing, Cloud Flavor": started,
		"Requested reset, seen, Operator":            replaced, "Requested reset, patch accepted, Operator": replaced,
		"Requested reset, never seen, Operator": lost, "Requested idle, Cloud": lost, "Requested idle, and its job runs, Cloud": lost,
		"Started job over, at from": failed, "Started job failed": failed, "Started job over, at something else": completed,
		"Started idle": failed, "Refused unneeded": withdrawn,
		"Completed smaller, Operator Flavor": replaced, "Completed smaller, Cloud Flavor": replaced,
		"Completed other in the cloud, spec ours, Operator Flavor": reverted,
	}
	for _, s := range []v1alpha1.ChangeState{requested, started} {
		for _, f := range []string{"has", "has it after all", "has it, and a newer entry", "has it after all, a day later"} {
			all[string(s)+" "+f] = completed
		}
	}
	for _, s := range []v1alpha1.ChangeState{lost, failed, replaced} {
		all[string(s)+" has it after all"] = completed
	}
	return all
}

// Every pair of state and fact is tried, for each kind and party.
func TestMoveFollowsTheTableAndNothingElse(t *testing.T) {
	table, left := moves(), moves()
	for _, state := range states() {
		for name, see := range facts() {
			for _, kind := range []v1alpha1.ChangeKind{volume, flavor} {
				for _, party := range []string{"Operator", "Cloud"} {
					ch := in(state, kind)
					was := v1alpha1.Change{State: before}
					s := Seen{Now: noon(), HasRds: party == "Operator", RequestTime: ch.RequestTime, Before: was, JobID: "j2", Reason: "SoldOut"}
					see(&s, &ch)
					want, moves := state, false
					key := fmt.Sprintf("%s %s", state, name)
					for _, k := range []string{key, key + ", " + party, key + ", " + party + " " + string(kind)} {
						if to, ok := table[k]; ok {
							want, moves = to, true
							delete(left, k)
						}
					}
					next, moved := Move(ch, s)
					if next.State != want || moved != moves {
						t.Errorf("%s %s, %s, %s: %q, moved %t; want %q", kind, state, name, party, next.State, moved, want)
					}
				}
			}
		}
	}
	for key := range left {
		t.Errorf("nothing has tried %q", key)
	}
}

func TestMoveStoresWhatIsKnownInEachState(t *testing.T) {
	base := Seen{Now: noon(), RequestTime: ago(anHour), Failures: 3, JobID: "j2", Reason: "SoldOut", Message: "in its words"}
	move := func(state v1alpha1.ChangeState, see func(*Seen)) v1alpha1.Change {
		s := base
		see(&s)
		next, _ := Move(in(state, volume), s)
		return next
	}
	event := func(e Event) func(*Seen) { return func(s *Seen) { s.Event = e } }
	if ch := move(refused, event(Allowed)); !ch.RequestTime.Equal(ago(0)) || ch.Refusal == nil || ch.Refusal.Count != 2 {
		t.Errorf("the next attempt: %+v", ch)
	}
	again := move(requested, event(Allowed))
	if !again.RequestTime.Equal(ago(0)) || again.Refusal == nil || again.Refusal.Reason != NoAnswer || again.Refusal.Count != 4 {
		t.Errorf("sent again: %+v, %+v", again, again.Refusal)
	}
	if ch, moved := Move(again, Seen{Event: Rejected, Now: noon(), RequestTime: again.RequestTime}); moved {
		t.Errorf("a refusal after no answer: %+v", ch)
	}
	if ch := move(requested, event(Accepted)); ch.JobID != "j2" || !ch.StartTime.Equal(ago(0)) || ch.Refusal != nil {
		t.Errorf("accepted: %+v", ch)
	}
	if ch := move(requested, event(Rejected)); ch.Refusal.Count != 4 || ch.Refusal.Reason != "SoldOut" || !ch.Refusal.NextTime.Equal(ago(-8*time.Minute)) {
		t.Errorf("refused for the fourth time: %+v", ch.Refusal)
	}
	for reason, see := range map[string]func(*Seen){
		JobFailed: func(s *Seen) { s.JobIsOver, s.JobHasFailed = true, true }, Stalled: func(s *Seen) { s.Idle = Patience },
	} {
		ch := move(started, see)
		if ch.Refusal.Reason != reason || ch.Refusal.Count != 4 || !ch.EndTime.Equal(ago(0)) || ch.JobID != "j1" {
			t.Errorf("%s: %+v, %+v", reason, ch, ch.Refusal)
		}
	}
	if ch := move(requested, func(s *Seen) { s.Idle = Patience }); ch.Refusal == nil || ch.Refusal.Reason != NoAnswer {
		t.Errorf("lost: %+v", ch)
	}
	if ch, moved := Move(in(requested, flavor), Seen{Now: noon(), Event: Unsent, RequestTime: ago(anHour)}); !moved || ch.State != none {
		t.Errorf("never sent, and there was none before: %+v", ch)
	}
}

// Nothing but a check of a pending change enters these times.
func TestMoveNoticesTheSpecAndAChangingFlavor(t *testing.T) {
	seen := Seen{Now: noon(), HasRds: true, SpecHas: true, SpecRead: true, IsChanging: true}
	for _, state := range states() {
		ch, _ := Move(in(state, flavor), seen)
		isPending := state == requested || state == started
		if (ch.SeenTime != nil) != isPending || isPending && ch.StartTime == nil {
			t.Errorf("%s: seen at %v, started at %v", state, ch.SeenTime, ch.StartTime)
		}
	}
	seen.SpecRead = false
	if ch, _ := Move(in(requested, flavor), seen); ch.SeenTime != nil {
		t.Error("a cache has shown the spec")
	}
}
