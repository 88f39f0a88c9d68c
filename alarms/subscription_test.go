// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// retryConfirmation is how long a subscription is pending before its confirmation is requested again.
const retryConfirmation = 30 * time.Minute

func TestEnsureRequestsConfirmationAgainAfterHalfAnHour(t *testing.T) {
	w := newWorld(t)
	want := w.desired()
	w.ensure(want)
	requested := func() int { return w.sim.Count("smn", "Subscribe") }
	w.advance(retryConfirmation)
	w.ensure(want)
	if requested() != 1 {
		t.Errorf("requested %d times within half an hour", requested())
	}
	w.advance(time.Second)
	if repaired := w.ensure(want); len(repaired) > 0 {
		t.Errorf("repaired %q, although nobody has changed anything", repaired)
	}
	if requested() != 2 || w.recorded.Subscription != v1alpha1.SubscriptionPending ||
		!w.recorded.SubscribedTime.Time.Equal(w.clock()) {
		t.Errorf("requested %d times, %+v", requested(), w.recorded)
	}
	w.sim.Confirm(w.recorded.SubscriptionURN)
	w.ensure(want)
	w.advance(24 * time.Hour)
	w.ensure(want)
	if requested() != 2 || w.recorded.Subscription != v1alpha1.SubscriptionConfirmed {
		t.Errorf("requested %d times, %+v", requested(), w.recorded)
	}
}

func TestConfirmationIsRequestedOnceWhenRecordFails(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	w.advance(retryConfirmation + time.Second)
	failed := errors.New("the status cannot be written")
	for range 3 {
		_, _, err := w.ensureWith(t.Context(), w.alarms, w.desired(), w.recorded, w.snapshot(),
			func(v1alpha1.Alarms) error { return failed })
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		w.advance(time.Second)
	}
	if n := w.sim.Count("smn", "Subscribe"); n != 2 {
		t.Errorf("requested %d times", n)
	}
}

// Messages arrive by the old URL until the new one is confirmed.
func TestNewURLReplacesOldURLOnceConfirmed(t *testing.T) {
	const before, now = "https://autopilot.example.com/smn", "http://new.example.com/smn"
	const ofOther = "0 email dba@example.com"
	for name, ensureOf := range map[string]func(*world) func(v1alpha1.DesiredAlarms) []string{
		"without a snapshot": func(w *world) func(v1alpha1.DesiredAlarms) []string { return w.ensure },
		"with a snapshot":    func(w *world) func(v1alpha1.DesiredAlarms) []string { return w.ensureWithSnapshot },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ensure := ensureOf(w)
			check := func(state v1alpha1.SubscriptionState, recorded []string, subscriptions ...string) {
				t.Helper()
				var found []string
				for _, s := range w.sim.Subscriptions() {
					found = append(found, fmt.Sprint(s.Status, " ", s.Protocol, " ", s.Endpoint))
				}
				slices.Sort(found)
				if diff := cmp.Diff(subscriptions, found); diff != "" {
					t.Errorf("subscriptions: %s", diff)
				}
				if !slices.Equal(w.recorded.Endpoints, recorded) || w.recorded.Subscription != state {
					t.Errorf("recorded %v %s, want %v %s", w.recorded.Endpoints, w.recorded.Subscription, recorded, state)
				}
			}
			ensure(w.desired())
			w.sim.Confirm(w.recorded.SubscriptionURN)
			if _, err := w.cloud.Subscribe(t.Context(), w.recorded.TopicURN, "email", "dba@example.com", "my own"); err != nil {
				t.Fatal(err)
			}
			w.recorded.Endpoints = nil // as in a status that an older version has written
			ensure(w.desired())
			check(v1alpha1.SubscriptionConfirmed, []string{before}, ofOther, "1 https "+before)

			w.restartWith(now)
			w.refuse("Subscribe")
			if _, _, err := w.ensureWith(t.Context(), w.alarms, w.desired(), w.recorded, nil, w.record); err == nil {
				t.Error("the refusal is not returned")
			}
			check(v1alpha1.SubscriptionMissing, []string{before}, ofOther, "1 https "+before)

			w.refuse()
			ensure(w.desired())
			check(v1alpha1.SubscriptionPending, []string{now, before}, ofOther, "0 http "+now, "1 https "+before)

			w.ensureWithSnapshot(w.desired())
			if n := len(w.sim.Requests()); n != 0 {
				t.Errorf("%d requests while it is pending", n)
			}
			w.sim.Confirm(w.recorded.SubscriptionURN)
			ensure(w.desired())
			check(v1alpha1.SubscriptionConfirmed, []string{now}, ofOther, "1 http "+now)
			w.checkNothingToDo(w.desired())
		})
	}
}

// SMN sends no confirmation for a Subscribe that it refuses.
func TestRefusedSubscribeDoesNotCountAgainstConfirmationLimit(t *testing.T) {
	w := newWorld(t)
	w.refuse("Subscribe")
	for i := range 160 {
		observed, _, err := w.ensureWith(t.Context(), w.alarms, w.desired(), w.recorded, nil, w.record)
		if !errors.Is(err, v1alpha1.ErrSubscriptionRefused) || !strings.Contains(err.Error(), "403 SMN.9999 Not today") ||
			observed.Subscription != v1alpha1.SubscriptionMissing {
			t.Fatalf("request %d: %v, %s", i, err, observed.Subscription)
		}
	}
	w.refuse()
	w.ensure(w.desired())
	w.checkRecord()
}

func TestConfirmationsAreRequestedWithinSMNsLimit(t *testing.T) {
	w := newWorld(t)
	// request requests the confirmation of a database without rules.
	request := func(i int) error {
		want := w.desired()
		want.Autopilot.Name, want.Rules = fmt.Sprint(i), nil
		_, _, err := w.ensureWith(t.Context(), w.alarms, want, v1alpha1.Alarms{}, nil, noRecord)
		return err
	}
	for i := range 150 {
		if err := request(i); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	w.advance(4 * time.Minute)
	const limit = "waiting for SMN's limit on confirmations until 10:10:00 UTC"
	for _, wantRequests := range []bool{true, false} { // the second run finds everything else in order
		listed := w.snapshot()
		w.sim.ResetRequests()
		err := w.tryEnsure(w.desired(), listed)
		if !errors.Is(err, v1alpha1.ErrConfirmationLimit) || err.Error() != limit {
			t.Errorf("error %v", err)
		}
		if w.recorded.Subscription != v1alpha1.SubscriptionMissing || len(w.recorded.Rules) != 3 || len(w.sim.Rules()) != 3 {
			t.Errorf("recorded %+v; the rules must not wait", w.recorded)
		}
		if n := len(w.sim.Requests()); n > 0 != wantRequests {
			t.Errorf("%d requests, want some %t", n, wantRequests)
		}
	}
	w.advance(6 * time.Minute) // the first 150 no longer count
	w.ensureWithSnapshot(w.desired())
	if w.recorded.Subscription != v1alpha1.SubscriptionPending {
		t.Errorf("ten minutes later: %s", w.recorded.Subscription)
	}
}
