package alarms_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
)

func TestSubscription(t *testing.T) {
	w := newWorld(t)
	want := w.want()
	w.ensure(want)
	asked := func() int { return w.sim.Count("smn", "Subscribe") }
	w.advance(askAgain)
	w.ensure(want)
	if asked() != 1 {
		t.Errorf("asked %d times within half an hour", asked())
	}
	w.advance(time.Second)
	w.ensure(want)
	if asked() != 2 || w.have.Subscription != alarms.Pending || !w.have.SubscribedTime.Equal(w.clock()) {
		t.Errorf("asked %d times, %+v", asked(), w.have)
	}
	w.sim.Confirm(w.have.SubscriptionURN)
	w.ensure(want)
	w.advance(24 * time.Hour)
	w.ensure(want)
	if asked() != 2 || w.have.Subscription != alarms.Confirmed {
		t.Errorf("asked %d times, %+v", asked(), w.have)
	}
	w.sim.Unsubscribe(w.have.SubscriptionURN)
	w.ensure(want)
	if asked() != 3 || w.have.Subscription != alarms.Pending {
		t.Errorf("canceled: asked %d times, %+v", asked(), w.have)
	}
}

const askAgain = 30 * time.Minute

// A run that could not record the subscription must not ask for its confirmation at once again.
func TestAdoptedSubscriptionIsGivenItsTime(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.have.SubscriptionURN, w.have.Subscription, w.have.SubscribedTime = "", "", time.Time{}
	w.ensure(w.want())
	if n := w.sim.Count("smn", "Subscribe"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	w.advance(askAgain + time.Second)
	w.ensure(w.want())
	if n := w.sim.Count("smn", "Subscribe"); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestNewURLReplacesTheOldAndLeavesAPersonsSubscription(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	if _, err := w.cloud.Subscribe(t.Context(), w.have.TopicURN, "email", "dba@example.com", "my own"); err != nil {
		t.Fatal(err)
	}
	want := w.want()
	want.Endpoint = "http://new.example.com/smn"
	w.ensure(want)
	var endpoints []string
	for _, s := range w.sim.Subscriptions() {
		endpoints = append(endpoints, s.Protocol+" "+s.Endpoint)
	}
	slices.Sort(endpoints)
	if diff := cmp.Diff([]string{"email dba@example.com", "http http://new.example.com/smn"}, endpoints); diff != "" {
		t.Error(diff)
	}
}

func TestConfirmationsAreNotAskedForFasterThanSMNSendsThem(t *testing.T) {
	w := newWorld(t)
	for i := range 152 {
		want := w.want()
		want.Name, want.Rules = alarms.Name("shop", fmt.Sprint(i), uid), nil
		have, err := w.alarms.Ensure(t.Context(), want, alarms.Have{}, func(alarms.Have) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if missing := have.Subscription == alarms.Missing; missing != (i >= 150) {
			t.Errorf("database %d: %s", i, have.Subscription)
		}
	}
	w.advance(10 * time.Minute)
	w.ensure(w.want())
	if w.have.Subscription != alarms.Pending {
		t.Errorf("ten minutes later: %s", w.have.Subscription)
	}
}
