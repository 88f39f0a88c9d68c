// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strconv"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// What may have begun counts for cooldown and budget. What has certainly not begun counts for nothing.
func TestEachStateCountsAsTheContractSays(t *testing.T) {
	for state, want := range map[v1alpha1.ChangeState]struct{ pending, starts, place, ours bool }{
		requested: {true, true, true, true}, started: {true, true, true, true}, refused: {}, withdrawn: {},
		completed: {false, true, false, true}, failed: {false, true, false, false}, lost: {false, true, false, false},
		replaced: {false, true, false, false}, reverted: {false, true, false, true},
	} {
		ch := in(state, flavor)
		list := []v1alpha1.Change{ch}
		_, isPending := Pending(list, flavor)
		if starts := len(FlavorStarts(list)) == 1; isPending != want.pending || AnyPending(list) != want.pending || starts != want.starts {
			t.Errorf("%s: pending %t, counts as a start %t", state, isPending, starts)
		}
		if got := HoldsPlace(list, noon()); got != want.place {
			t.Errorf("%s: holds a place %t", state, got)
		}
		if got := IsRequestOfOurs(list, flavor, "110"); got != want.ours {
			t.Errorf("%s: its flavor in the Rds is ours %t", state, got)
		}
		since := v1alpha1.Change{Kind: flavor, By: v1alpha1.ByOther, From: "110", To: "120", State: completed}
		if got := IsRequestOfOurs([]v1alpha1.Change{since, ch}, flavor, "110"); got != (want.ours && state != completed) {
			t.Errorf("%s: its flavor in the Rds is ours %t, although the cloud has had another one since", state, got)
		}
		_, changed := LastChanged(list, flavor)
		if isChange := state == completed || state == reverted || state == replaced; changed != isChange {
			t.Errorf("%s: may have been in the cloud %t", state, changed)
		}
		ch.By = v1alpha1.ByOther
		if list[0] = ch; len(FlavorStarts(list)) > 0 || HoldsPlace(list, noon()) || IsRequestOfOurs(list, flavor, "110") {
			t.Errorf("%s by another counts", state)
		}
	}
}

func TestAChangeStartsAtTheLatestOfItsTimes(t *testing.T) {
	ch := in(requested, flavor)
	for _, step := range []struct {
		enter func()
		want  time.Duration
	}{
		{func() {}, anHour},
		{func() { ch.StartTime = ago(50 * time.Minute) }, 50 * time.Minute},
		{func() { ch.State, ch.EndTime = completed, *ago(30 * time.Minute) }, 30 * time.Minute},
	} {
		step.enter()
		if at, ok := StartOf(ch); !ok || !at.Equal(noon().Add(-step.want)) {
			t.Errorf("%s: %s, want %s ago", ch.State, at, step.want)
		}
	}
	old := in(requested, flavor)
	if old.RequestTime = ago(2 * anHour); HoldsPlace([]v1alpha1.Change{old}, noon()) {
		t.Error("a place is held for longer than two hours")
	}
}

// A limit must never ask for an entry that was dropped to make room for others.
func TestPutKeepsWhatGuardsCount(t *testing.T) {
	var list []v1alpha1.Change
	add := func(state v1alpha1.ChangeState, kind v1alpha1.ChangeKind, by v1alpha1.Author, age time.Duration, metric v1alpha1.Metric) {
		ch := in(state, kind)
		ch.By, ch.RequestTime, ch.EndTime, ch.To, ch.Metrics = by, ago(age), *ago(age), strconv.Itoa(len(list)), []v1alpha1.Metric{metric}
		list = Put(list, nil, ch, noon())
	}
	const day = 24 * time.Hour
	add(completed, volume, v1alpha1.ByAutopilot, 90*day, "storage")
	add(completed, flavor, v1alpha1.ByAutopilot, 8*day, "memory")
	add(completed, flavor, v1alpha1.ByAutopilot, 6*day, "memory")
	add(completed, flavor, v1alpha1.ByAutopilot, 5*day, "memory")
	for range 10 {
		add(failed, flavor, v1alpha1.ByAutopilot, 23*time.Hour, "cpu")
	}
	for range 20 {
		add(completed, flavor, v1alpha1.ByOther, anHour, "")
		add(withdrawn, flavor, v1alpha1.ByAutopilot, anHour, "cpu")
		add(replaced, volume, v1alpha1.ByAutopilot, anHour, "storage")
	}
	add(refused, flavor, v1alpha1.ByAutopilot, anHour, "cpu")
	count := map[string]int{}
	for _, ch := range list {
		count[string(ch.By)+" "+string(ch.State)+" "+string(ch.Kind)]++
	}
	for what, want := range map[string]int{
		"Autopilot Failed Flavor": 10, "Autopilot Completed Flavor": 2, "Autopilot Completed Volume": 1, "Autopilot Withdrawn Flavor": 1,
		"Autopilot Refused Flavor": 1, "Autopilot Replaced Volume": 8, "Other Completed Flavor": 4,
	} {
		if count[what] != want {
			t.Errorf("%d of %s, want %d", count[what], what, want)
		}
	}
	if grown, ok := LastGrowth(list); !ok || grown.To != "0" {
		t.Errorf("our last growth is %+v", grown)
	}
}

// An attempt is remembered for a day, whatever became of its change, until one has begun.
func TestBackoffIsThatOfTheLastAttemptThatFailed(t *testing.T) {
	with := func(ch v1alpha1.Change, age time.Duration) v1alpha1.Change {
		ch.Refusal = &v1alpha1.Refusal{Count: 3, Time: *ago(age)}
		return ch
	}
	for name, tc := range map[string]struct {
		list []v1alpha1.Change
		want int32
	}{
		"none":                                {nil, 0},
		"refused":                             {[]v1alpha1.Change{with(in(refused, volume), time.Minute)}, 3},
		"withdrawn":                           {[]v1alpha1.Change{with(in(withdrawn, volume), 23*anHour)}, 3},
		"withdrawn a day ago":                 {[]v1alpha1.Change{with(in(withdrawn, volume), 24*anHour)}, 0},
		"of the other kind":                   {[]v1alpha1.Change{with(in(refused, flavor), time.Minute)}, 0},
		"another size lost before":            {[]v1alpha1.Change{in(requested, volume), with(in(lost, volume), anHour)}, 3},
		"completed since":                     {[]v1alpha1.Change{in(completed, volume), with(in(lost, volume), anHour)}, 0},
		"started since":                       {[]v1alpha1.Change{in(started, volume), with(in(failed, volume), anHour)}, 0},
		"a size of another writer in the Rds": {[]v1alpha1.Change{{Kind: volume, By: v1alpha1.ByOther, State: requested}, with(in(refused, volume), anHour)}, 3},
	} {
		if _, got := Backoff(tc.list, volume, noon()); got != tc.want {
			t.Errorf("%s: %d failures, want %d", name, got, tc.want)
		}
	}
	for failures, want := range map[int32]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 5: 15 * time.Minute, 99: 15 * time.Minute} {
		if got := Wait(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

func TestResetsCountsTheLastInARow(t *testing.T) {
	at := func(state v1alpha1.ChangeState, age time.Duration) v1alpha1.Change {
		ch := in(state, volume)
		ch.EndTime = *ago(age)
		return ch
	}
	for name, tc := range map[string]struct {
		list []v1alpha1.Change
		want int
	}{
		"two":                     {[]v1alpha1.Change{at(replaced, time.Minute), at(lost, anHour)}, 2},
		"one is pending":          {[]v1alpha1.Change{in(requested, volume), at(replaced, anHour)}, 1},
		"one was completed since": {[]v1alpha1.Change{at(completed, time.Minute), at(replaced, anHour)}, 0},
		"a day ago":               {[]v1alpha1.Change{at(replaced, 24*anHour)}, 0},
		"none":                    {nil, 0},
	} {
		if n, _ := Resets(tc.list, "100", 0, noon()); n != tc.want {
			t.Errorf("%s: %d, want %d", name, n, tc.want)
		}
	}
	if n, _ := Resets([]v1alpha1.Change{at(replaced, time.Minute)}, "110", 0, noon()); n > 0 {
		t.Error("the size has changed since")
	}
}
