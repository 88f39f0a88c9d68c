// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	pending   = v1alpha1.SubscriptionPending
	confirmed = v1alpha1.SubscriptionConfirmed
	refused   = v1alpha1.SubscriptionRefused
)

// tryTopic checks the topic, which is wanted. The requests of the simulation are those of this check afterwards.
func (w *world) tryTopic() error { return w.reconcileTopic(true) }

// reconcileTopic checks the topic, and what is returned and written.
func (w *world) reconcileTopic(wanted bool) error {
	w.sim.ResetRequests()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	found, err := w.alarms.ReconcileTopic(ctx, wanted,
		func(context.Context) (v1alpha1.Topic, error) { return w.topic, w.unreadable },
		func(_ context.Context, t v1alpha1.Topic) error {
			if cmp.Equal(w.topic, t) && w.unreadable == nil {
				w.t.Errorf("written again: %+v", t)
			}
			if w.unwritable == nil {
				w.topic = t
			}
			return w.unwritable
		})
	if err == nil && !cmp.Equal(found, w.topic) || err != nil && wanted && found.Message != err.Error() {
		w.t.Errorf("returned %+v, %v; the ConfigMap has %+v", found, err, w.topic)
	}
	return err
}

// ensureTopic checks the topic, and then the writes, the state and that the ConfigMap has the topic of our name.
func (w *world) ensureTopic(state v1alpha1.SubscriptionState, writes ...string) {
	w.t.Helper()
	w.must(w.tryTopic())
	if diff := cmp.Diff(writes, w.writes()); diff != "" {
		w.t.Errorf("writes:\n%s", diff)
	}
	if w.topic.State != state || w.topic.Message != "" || w.topic.URL != w.options.Endpoint || w.topic.URN != w.topicURN() {
		w.t.Fatalf("topic %+v, want state %s", w.topic, state)
	}
}

// checkTopicFails checks the topic, which must fail, and then the state and the text in its message.
func (w *world) checkTopicFails(state v1alpha1.SubscriptionState, text string) {
	w.t.Helper()
	if err := w.tryTopic(); err == nil || w.topic.Message != err.Error() || w.topic.State != state ||
		!strings.Contains(w.topic.Message, text) || strings.Contains(w.topic.Message, "\n") {
		w.t.Errorf("%+v, %v; want state %q and %q", w.topic, err, state, text)
	}
}

// confirmTopic creates the topic and confirms the subscription of the URL.
func (w *world) confirmTopic() {
	w.t.Helper()
	w.ensureTopic(pending, "CreateTopic", "Subscribe")
	w.sim.Confirm(w.topic.SubscriptionURN)
	w.ensureTopic(confirmed)
}

// checkEndpoints checks which endpoints are subscribed, oldest first.
func (w *world) checkEndpoints(want ...string) {
	w.t.Helper()
	var found []string
	for _, s := range w.sim.Subscriptions() {
		found = append(found, s.Endpoint)
	}
	if diff := cmp.Diff(want, found); diff != "" {
		w.t.Error(diff)
	}
}

// Whatever the ConfigMap says and the cloud has, two checks lead to the one right state. A third one changes nothing.
func TestTopicIsRightAfterTwoChecksFromEveryState(t *testing.T) {
	const oldURL = "https://old.example.com/smn"
	w := newWorld(t)
	edit := func(change func(*v1alpha1.Topic)) func() { return func() { change(&w.topic) } }
	configMaps := map[string]func(){
		"right":      func() {},
		"absent":     func() { w.topic = v1alpha1.Topic{} },
		"unreadable": func() { w.unreadable = errors.New("forbidden") },
		"edited": edit(func(t *v1alpha1.Topic) {
			ahead := metav1.NewTime(w.clock().Add(24 * time.Hour))
			t.State, t.SubscriptionURN, t.Message, t.RequestedTime = confirmed, "urn:1", "edited", &ahead
		}),
		"edited to another project": edit(func(t *v1alpha1.Topic) { t.URN = w.twinURN() }),
		"edited to the older URL": edit(func(t *v1alpha1.Topic) {
			t.URL, t.State, t.SubscriptionURN = ourURL, confirmed, w.sim.Subscriptions()[0].URN
		}),
	}
	check := func(t *testing.T, configMap, topic, subscription string, wanted bool) {
		w.reset(t)
		create := func(name string) string {
			urn, err := w.cloud.CreateTopic(t.Context(), name, "rds-autopilot autopilot cluster "+clusterID)
			w.must(err)
			return urn
		}
		name := alarms.TopicName(clusterID, "autopilot")
		create(name + "2")
		create("x" + name)
		others, urn := w.sim.Topics(), create(name)
		subscribe := func(url string) string {
			urn, err := w.cloud.Subscribe(t.Context(), urn, "https", url, "rds-autopilot")
			w.must(err)
			return urn
		}
		requested := metav1.NewTime(w.clock().Add(-time.Minute))
		w.topic = v1alpha1.Topic{URN: urn, URL: ourURL, State: pending, RequestedTime: &requested}
		switch subscription {
		case "of another URL":
			w.topic = v1alpha1.Topic{URN: urn, URL: oldURL, State: confirmed, SubscriptionURN: subscribe(oldURL)}
			w.sim.Confirm(w.topic.SubscriptionURN)
		case "confirmed":
			w.topic.SubscriptionURN, w.topic.State = subscribe(ourURL), confirmed
			w.sim.Confirm(w.topic.SubscriptionURN)
		case "pending":
			w.topic.SubscriptionURN = subscribe(ourURL)
		}
		if configMap != "edited to the older URL" || subscription != "absent" {
			configMaps[configMap]()
		}
		if topic == "absent" {
			w.sim.RemoveTopic(urn)
		}
		w.hasTwin = topic == "two of the name"
		before, topics := w.topic, w.sim.Topics()
		for range 2 {
			if err := w.reconcileTopic(wanted); (err != nil) != (wanted && w.unreadable != nil) {
				t.Errorf("%v", err)
			}
			w.advance(30 * time.Second)
		}
		switch {
		case wanted && w.unreadable != nil: // no receiver knows the topic
			if !cmp.Equal(topics, w.sim.Topics()) || !cmp.Equal(before, w.topic) {
				t.Errorf("topics %+v, ConfigMap %+v", w.sim.Topics(), w.topic)
			}
			return
		case !wanted:
			if !cmp.Equal(others, w.sim.Topics()) || w.topic != (v1alpha1.Topic{}) {
				t.Errorf("topics %+v, ConfigMap %+v", w.sim.Topics(), w.topic)
			}
			return
		}
		want := v1alpha1.Topic{URN: urn, URL: ourURL, State: pending, RequestedTime: w.topic.RequestedTime}
		wantURLs := []string{ourURL}
		if subscription == "of another URL" && topic != "absent" {
			wantURLs = []string{oldURL, ourURL}
		}
		if subscription == "confirmed" && topic != "absent" {
			want.State = confirmed
		} else if want.RequestedTime == nil || want.RequestedTime.After(w.clock()) {
			t.Errorf("ConfigMap %+v, want the time of the request", w.topic)
		}
		if w.checkEndpoints(wantURLs...); t.Failed() {
			return
		}
		want.SubscriptionURN = w.sim.Subscriptions()[len(wantURLs)-1].URN
		if !cmp.Equal(want, w.topic) || len(w.sim.Topics()) != len(others)+1 {
			t.Errorf("topics %+v, ConfigMap %+v, want %+v", w.sim.Topics(), w.topic, want)
		}
		w.ensureTopic(want.State)
		if n := len(w.sim.Requests()); n != 2 {
			t.Errorf("%d requests while everything is in order, want 2", n)
		}
		w.sim.Confirm(want.SubscriptionURN)
		w.must(w.tryTopic())
		w.ensureTopic(confirmed)
		w.checkEndpoints(ourURL)
	}
	for configMap := range configMaps {
		for _, topic := range []string{"absent", "there", "two of the name"} {
			for _, subscription := range []string{"absent", "pending", "confirmed", "of another URL"} {
				for _, wanted := range []bool{true, false} {
					name := fmt.Sprintf("ConfigMap %s, topic %s, subscription %s, on %t", configMap, topic, subscription, wanted)
					t.Run(name, func(t *testing.T) { check(t, configMap, topic, subscription, wanted) })
				}
			}
		}
	}
}

// Without the ConfigMap, no receiver would accept the confirmation.
func TestTopicThatCannotBeStoredIsNotSubscribed(t *testing.T) {
	w := newWorld(t)
	w.unwritable = errors.New("denied")
	if err := w.tryTopic(); !errors.Is(err, w.unwritable) || len(w.sim.Topics()) != 1 || len(w.sim.Subscriptions()) != 0 {
		t.Errorf("%v, topics %+v, subscriptions %+v", err, w.sim.Topics(), w.sim.Subscriptions())
	}
	w.unwritable = nil
	w.ensureTopic(pending, "Subscribe")
}

func TestPendingSubscriptionIsRequestedAgainAfter30Minutes(t *testing.T) {
	w := newWorld(t)
	w.ensureTopic(pending, "CreateTopic", "Subscribe")
	w.advance(29 * time.Minute)
	w.restart()
	w.ensureTopic(pending)
	w.advance(time.Minute)
	w.ensureTopic(pending, "Subscribe")
	if !w.topic.RequestedTime.Time.Equal(w.clock()) {
		t.Errorf("requested at %s, recorded %s", w.clock(), w.topic.RequestedTime)
	}
	w.ensureTopic(pending)
	w.sim.Confirm(w.topic.SubscriptionURN)
	w.ensureTopic(confirmed)
}

func TestSubscriptionThatIsLostIsRequestedAtOnceButAtMost10TimesIn10Minutes(t *testing.T) {
	w := newWorld(t)
	w.confirmTopic() // the first request
	for i := range 9 {
		if i%2 == 0 {
			w.sim.RemoveSubscription(w.topic.SubscriptionURN)
		} else {
			w.sim.Unsubscribe(w.topic.SubscriptionURN) // by its link: the list shows it as canceled
		}
		w.advance(time.Minute)
		w.ensureTopic(pending, "Subscribe")
		w.sim.Confirm(w.topic.SubscriptionURN)
		w.ensureTopic(confirmed)
	}
	w.sim.Unsubscribe(w.topic.SubscriptionURN)
	w.checkTopicFails(pending, "10 times in 10 minutes")
	if len(w.writes()) > 0 {
		t.Errorf("the 11th request was sent: %v", w.writes())
	}
	w.advance(time.Minute) // the first request was 10 minutes ago
	w.ensureTopic(pending, "Subscribe")
}

func TestURLThatSMNListsInAnotherFormIsSubscribedOnce(t *testing.T) {
	for _, asCode := range []bool{false, true} {
		w := newWorld(t)
		w.sim.Configure(func(s *simcloud.Settings) { s.Normalizes, s.ExistsAsCode = true, asCode })
		w.options.Endpoint = "https://Autopilot.example.com:443/smn/"
		w.restart()
		w.confirmTopic()
		w.restart()
		w.ensureTopic(confirmed)
		w.topic = v1alpha1.Topic{} // without a record, only SMN knows that both are the same
		w.must(w.tryTopic())
		w.ensureTopic(confirmed)
		w.checkEndpoints(w.options.Endpoint)
	}
}

func TestOlderURLIsRemovedOnceTheNewOneIsConfirmed(t *testing.T) {
	const newURL, person = "http://new.example.com/smn", "https://person.example.com/smn"
	w := newWorld(t)
	w.confirmTopic()
	_, err := w.cloud.Subscribe(t.Context(), w.topic.URN, "https", person, "")
	w.must(err)
	w.options.Endpoint = newURL
	w.restart()
	for _, failing := range []string{"ListTopicSubscriptions", "Subscribe", "Subscribe"} {
		w.refuse(failing) // the recorded subscription is still that of the older URL
		w.checkTopicFails(refused, "Not today")
	}
	w.refuse()
	w.ensureTopic(pending, "Subscribe")
	w.ensureTopic(pending)
	w.checkEndpoints(ourURL, person, newURL)
	w.sim.Confirm(w.topic.SubscriptionURN)
	w.refuse("DeleteSubscription")
	w.checkTopicFails(confirmed, "Not today")
	w.refuse()
	w.ensureTopic(confirmed, "DeleteSubscription")
	w.checkEndpoints(person, newURL)
}

func TestOnlyARefusalBySMNIsRefused(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		operation string
		fault     simcloud.Fault
		state     v1alpha1.SubscriptionState
		text      string
	}{
		"topic":           {"CreateTopic", simcloud.Fault{Status: 400, Body: `{"code":"SMN.0002"}`}, refused, "SMN.0002"},
		"address":         {"Subscribe", simcloud.Fault{Status: 403, Body: `{"code":"SMN.0069"}`}, refused, "SMN.0069"},
		"right":           {"ListTopicSubscriptions", simcloud.Fault{Status: 403}, refused, "403"},
		"SMN is down":     {"CreateTopic", simcloud.Fault{Status: 503}, "", "503"},
		"SMN breaks down": {"Subscribe", simcloud.Fault{Status: 503}, pending, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t)
			w.fail(tt.fault, tt.operation)
			w.checkTopicFails(tt.state, tt.text)
			w.refuse()
			w.must(w.tryTopic())
			if w.topic.State != pending || w.topic.Message != "" {
				t.Errorf("afterwards: %+v", w.topic)
			}
		})
	}
}

// A refused subscription gets no confirmation, so it does not count against the limit.
func TestRefusalIsReportedAsLongAsItLasts(t *testing.T) {
	w := newWorld(t)
	w.refuse("Subscribe")
	for range 15 {
		w.checkTopicFails(refused, "Not today")
	}
	w.refuse()
	w.ensureTopic(pending, "Subscribe")
	w.sim.Confirm(w.topic.SubscriptionURN)
	w.ensureTopic(confirmed)
	// A confirmed subscription stays confirmed if SMN refuses to list it.
	w.refuse("ListTopicSubscriptions")
	w.checkTopicFails(confirmed, "Not today")
}
