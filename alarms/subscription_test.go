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

func TestEnsureRequestsConfirmationAgainAfterHalfAnHour(t *testing.T) {
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
	if repaired := w.ensure(want); len(repaired) > 0 {
		t.Errorf("nobody has broken anything: %q", repaired)
	}
	if asked() != 2 || w.recorded.Subscription != v1alpha1.SubscriptionPending || !w.recorded.SubscribedTime.Time.Equal(w.clock()) {
		t.Errorf("asked %d times, %+v", asked(), w.recorded)
	}
	w.sim.Confirm(w.recorded.SubscriptionURN)
	w.ensure(want)
	w.advance(24 * time.Hour)
	w.ensure(want)
	if asked() != 2 || w.recorded.Subscription != v1alpha1.SubscriptionConfirmed {
		t.Errorf("asked %d times, %+v", asked(), w.recorded)
	}
	w.sim.Unsubscribe(w.recorded.SubscriptionURN)
	w.ensure(want)
	if asked() != 3 || w.recorded.Subscription != v1alpha1.SubscriptionPending {
		t.Errorf("canceled: asked %d times, %+v", asked(), w.recorded)
	}
}

const askAgain = 30 * time.Minute

// A run that could not record the subscription must not ask for its confirmation at once again.
func TestEnsureWaitsBeforeItRequestsConfirmationOfAdoptedSubscription(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.recorded.SubscriptionURN, w.recorded.Subscription, w.recorded.SubscribedTime = "", "", nil
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

// Nor must one that could not record that it asked again.
func TestConfirmationIsRequestedOnceWhenRecordFails(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	w.advance(askAgain + time.Second)
	for range 3 {
		_, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, w.listing(), func(v1alpha1.Alarms) error { return errCrash })
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		w.advance(time.Second)
	}
	if n := w.sim.Count("smn", "Subscribe"); n != 2 {
		t.Errorf("asked %d times", n)
	}
	w.ensure(w.want())
	w.advance(askAgain + time.Second)
	w.ensure(w.want())
	if n := w.sim.Count("smn", "Subscribe"); n != 3 {
		t.Errorf("asked %d times", n)
	}
}

// Messages come by the old URL until the new one is confirmed.
func TestNewURLReplacesOldURLOnceConfirmed(t *testing.T) {
	for _, listing := range []bool{false, true} {
		w := newWorld(t)
		ensure := w.ensure
		if listing {
			ensure = w.sweep
		}
		old := w.want()
		ensure(old)
		w.sim.Confirm(w.recorded.SubscriptionURN)
		ensure(old)
		oldURN := w.recorded.SubscriptionURN
		if _, err := w.cloud.Subscribe(t.Context(), w.recorded.TopicURN, "email", "dba@example.com", "my own"); err != nil {
			t.Fatal(err)
		}
		subscribed := func(want ...string) {
			t.Helper()
			var endpoints []string
			for _, s := range w.sim.Subscriptions() {
				endpoints = append(endpoints, fmt.Sprint(s.Status, " ", s.Protocol, " ", s.Endpoint))
			}
			slices.Sort(endpoints)
			if diff := cmp.Diff(want, endpoints); diff != "" {
				t.Errorf("listing %v: %s", listing, diff)
			}
		}
		delivers := func(want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, w.recorded.Endpoints); diff != "" {
				t.Errorf("listing %v: recorded endpoints: %s", listing, diff)
			}
		}
		const before, now = "https://autopilot.example.com/smn", "http://new.example.com/smn"
		w.recorded.Endpoints = nil // as an object from a backup, or of an older version
		ensure(old)
		delivers(before)
		want := w.want()
		w.restartWith(now)
		w.refuse("Subscribe")
		if _, _, err := w.ensureWith(t.Context(), w.alarms, want, w.recorded, nil, w.record); err == nil || w.recorded.Subscription != v1alpha1.SubscriptionMissing {
			t.Errorf("refused: %v, %s", err, w.recorded.Subscription)
		}
		subscribed("0 email dba@example.com", "1 https https://autopilot.example.com/smn")
		delivers(before)
		w.refuse()
		ensure(want)
		delivers(now, before)
		subscribed("0 email dba@example.com", "0 http http://new.example.com/smn", "1 https https://autopilot.example.com/smn")
		if w.recorded.Subscription != v1alpha1.SubscriptionPending || w.recorded.SubscriptionURN == oldURN {
			t.Errorf("recorded: %+v", w.recorded)
		}
		w.sweep(want) // what waits is no reason to ask
		if n := len(w.sim.Requests()); n != 0 {
			t.Errorf("%d requests while it is pending", n)
		}
		w.sim.Confirm(w.recorded.SubscriptionURN)
		ensure(want)
		subscribed("0 email dba@example.com", "1 http http://new.example.com/smn")
		delivers(now)
		if w.recorded.Subscription != v1alpha1.SubscriptionConfirmed {
			t.Errorf("recorded: %+v", w.recorded)
		}
		w.checkQuiet(want)
	}
}

// What SMN refuses sends no confirmation, so it takes the place of none, and says why every time.
func TestRefusedSubscribeDoesNotCountAgainstConfirmationLimit(t *testing.T) {
	w := newWorld(t)
	w.refuse("Subscribe")
	for i := range 160 {
		have, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, nil, w.record)
		if !errors.Is(err, v1alpha1.ErrSubscriptionRefused) || !strings.Contains(err.Error(), "403 SMN.9999 Not today") || have.Subscription != v1alpha1.SubscriptionMissing {
			t.Fatalf("try %d: %v, %s", i, err, have.Subscription)
		}
	}
	w.refuse()
	w.ensure(w.want())
	w.checkRecord()
}

// request requests the confirmation for a database without rules.
func (w *world) request(namespace string, i int) error {
	want := w.want()
	want.Autopilot.Namespace, want.Autopilot.Name, want.Rules = namespace, fmt.Sprint(i), nil
	have, _, err := w.ensureWith(w.t.Context(), w.alarms, want, v1alpha1.Alarms{}, nil, func(v1alpha1.Alarms) error { return nil })
	if missing := have.Subscription == v1alpha1.SubscriptionMissing; missing != (err != nil) {
		w.t.Errorf("database %s/%d: %s, %v", namespace, i, have.Subscription, err)
	}
	return err
}

// requestAll requests confirmations for databases from the first one on until one must wait, and returns how many were
// requested.
func (w *world) requestAll(namespace string, first int) (n int) {
	for w.request(namespace, first+n) == nil {
		n++
	}
	return n
}

func TestConfirmationsAreRequestedWithinSMNsLimit(t *testing.T) {
	w := newWorld(t)
	if n := w.requestAll("shop", 0); n != 150 {
		t.Fatalf("%d for the only namespace", n)
	}
	w.advance(4 * time.Minute)
	others := []string{"billing", "a", "b", "c"}
	const limit = "waiting for SMN's limit on confirmations until 10:10:00 UTC"
	for _, namespace := range others {
		if err := w.request(namespace, 0); err == nil || err.Error() != limit {
			t.Errorf("%s: %v", namespace, err)
		}
	}
	for range 2 { // the second time all but the subscription is in order
		listed := w.listing()
		_, repaired, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, listed, w.record)
		if !errors.Is(err, v1alpha1.ErrConfirmationLimit) || err.Error() != limit || len(repaired) > 0 {
			t.Errorf("%q, %v", repaired, err)
		}
		if w.recorded.Subscription != v1alpha1.SubscriptionMissing || len(w.recorded.Rules) != 3 || len(w.sim.Rules()) != 3 {
			t.Errorf("the rules do not wait: %+v", w.recorded)
		}
	}
	listed := w.listing()
	w.sim.ResetRequests()
	if _, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, listed, w.record); err == nil || err.Error() != limit || len(w.sim.Requests()) != 0 {
		t.Errorf("still waiting: %v, %d requests", err, len(w.sim.Requests()))
	}
	w.advance(6 * time.Minute) // the 150 count no longer, and the other namespaces still wait
	w.sweep(w.want())
	if w.recorded.Subscription != v1alpha1.SubscriptionPending {
		t.Errorf("ten minutes later: %s", w.recorded.Subscription)
	}
	if n := 1 + w.requestAll("shop", 200); n != 100 {
		t.Errorf("shop got %d, although others wait", n)
	}
	taken := 100
	for _, namespace := range others { // each gets some of what is left
		got := w.requestAll(namespace, 0)
		if taken += got; got == 0 || taken > 150 {
			t.Errorf("%s got %d, %d in all", namespace, got, taken)
		}
	}
	if taken != 150 {
		t.Errorf("%d in all", taken)
	}
}

func TestNamespaceExceedsItsShareOnceNoOtherWaits(t *testing.T) {
	w := newWorld(t)
	w.requestAll("shop", 0)
	w.advance(9 * time.Minute)
	for i := range 3 {
		if w.request("billing", i) == nil {
			t.Fatal("more than 150")
		}
	}
	w.advance(time.Minute)
	if n := w.requestAll("shop", 200); n != 100 {
		t.Errorf("shop got %d while billing waits", n)
	}
	for i := range 3 {
		if err := w.request("billing", i); err != nil {
			t.Error(err)
		}
		if n := w.requestAll("shop", 300); i < 2 && n != 0 {
			t.Errorf("shop got %d more while %d databases of billing wait", n, 2-i)
		} else if i == 2 && n != 47 {
			t.Errorf("shop got %d more once none waits", n)
		}
	}
	w.advance(9 * time.Minute)
	if w.request("billing", 3) == nil { // it gives up
		t.Error("more than 150")
	}
	w.advance(9 * time.Minute)
	if n := w.requestAll("shop", 400); n != 100 {
		t.Errorf("shop got %d 9 minutes after the last request of billing", n)
	}
	w.advance(time.Minute)
	if n := w.requestAll("shop", 500); n != 50 {
		t.Errorf("shop got %d more 10 minutes after the last request of billing", n)
	}
}

// What waits for the limit is told once, and asked for without another word.
func TestLostSubscriptionIsReportedOnceWhileLimitIsReached(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	for i := range 149 {
		want := w.want()
		want.Autopilot.Name, want.Rules = fmt.Sprint(i), nil
		if _, _, err := w.ensureWith(t.Context(), w.alarms, want, v1alpha1.Alarms{}, nil, func(v1alpha1.Alarms) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	w.sim.Unsubscribe(w.recorded.SubscriptionURN)
	_, repaired, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, w.listing(), w.record)
	if !errors.Is(err, v1alpha1.ErrConfirmationLimit) {
		t.Errorf("err = %v", err)
	}
	if diff := cmp.Diff([]string{"the subscription was canceled: it will be requested again when SMN's limit on confirmations allows it"}, repaired); diff != "" {
		t.Error(diff)
	}
	w.advance(10 * time.Minute)
	if repaired := w.sweep(w.want()); len(repaired) > 0 || w.recorded.Subscription != v1alpha1.SubscriptionPending {
		t.Errorf("%q, %+v", repaired, w.recorded)
	}
}
