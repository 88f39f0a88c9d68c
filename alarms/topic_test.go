// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	pending   = v1alpha1.SubscriptionPending
	confirmed = v1alpha1.SubscriptionConfirmed
	refused   = v1alpha1.SubscriptionRefused
)

// tryTopic runs EnsureTopic with what the last run returned. The requests of the simulation are those of this run
// afterwards.
func (w *world) tryTopic() error {
	w.sim.ResetRequests()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	next, err := w.alarms.EnsureTopic(ctx, w.topic, func(t v1alpha1.Topic) error {
		w.topic = t
		return nil
	})
	w.topic = next
	return err
}

// ensureTopic runs EnsureTopic and checks its writes, the state and that the topic of our name is the recorded one.
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

// checkTopicFails runs EnsureTopic, which must fail, and checks the state and the text in its message.
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

func TestEnsureTopicCreatesOneTopicAndRecordsItBeforeItSubscribes(t *testing.T) {
	w := newWorld(t)
	failed := errors.New("the API server does not answer")
	topic, err := w.alarms.EnsureTopic(t.Context(), v1alpha1.Topic{}, func(topic v1alpha1.Topic) error {
		if topic.URN != w.topicURN() || len(w.sim.Topics()) != 1 || len(w.sim.Subscriptions()) != 0 {
			t.Errorf("recorded %+v with %d topics, %d subscriptions", topic, len(w.sim.Topics()), len(w.sim.Subscriptions()))
		}
		return failed
	})
	if !errors.Is(err, failed) || topic.URN != w.topicURN() || topic.State != "" || len(w.sim.Subscriptions()) != 0 {
		t.Errorf("without a record: %+v, %v", topic, err)
	}
	w.ensureTopic(pending, "CreateTopic", "Subscribe") // the record is lost, and the topic is found by its name
	subscription, topics := w.sim.Subscriptions()[0], w.sim.Topics()
	if len(topics) != 1 || topics[0].DisplayName != "rds-autopilot autopilot cluster "+clusterID {
		t.Errorf("topics %+v", topics)
	}
	if subscription.Endpoint != ourURL || subscription.Protocol != "https" || subscription.URN != w.topic.SubscriptionURN {
		t.Errorf("subscription %+v, recorded %+v", subscription, w.topic)
	}
	w.sim.Confirm(subscription.URN)
	w.ensureTopic(confirmed)
	if n := len(w.sim.Requests()); n != 1 {
		t.Errorf("%d requests while everything is in order, want 1", n)
	}
	w.topic = v1alpha1.Topic{}
	w.ensureTopic(confirmed, "CreateTopic")
	if w.topic.SubscriptionURN != subscription.URN {
		t.Errorf("after the record was lost: %+v", w.topic)
	}
	w.sim.RemoveTopic(w.topicURN())
	w.ensureTopic(pending, "CreateTopic", "Subscribe")
	if w.topic.SubscriptionURN == subscription.URN || len(w.sim.Topics()) != 1 {
		t.Errorf("after the topic was deleted: %+v", w.topic)
	}
}

// The credentials may have been changed to those of another project, and a record may be that of another installation.
func TestRecordOfAnotherTopicIsNotUsed(t *testing.T) {
	w := newWorld(t)
	for _, urn := range []string{
		strings.Replace(w.topicURN(), w.sim.ProjectID(), strings.Repeat("f", 32), 1), w.topicURN() + "x",
	} {
		w.reset(t)
		requested := v1alpha1.Topic{URN: urn, SubscriptionURN: urn + ":1", URL: ourURL, State: confirmed}
		w.topic = requested
		w.ensureTopic(pending, "CreateTopic", "Subscribe")
		for range 2 { // the second time there is no topic
			w.must(w.alarms.RemoveTopic(t.Context(), requested))
			if len(w.sim.Topics()) != 0 {
				t.Errorf("RemoveTopic with the record %s left the topic", urn)
			}
		}
		for _, r := range w.sim.Requests() {
			if strings.Contains(r.URI, urn) {
				t.Errorf("request for the topic of another one: %s", r.URI)
			}
		}
	}
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

func TestRemoveTopicLeavesTopicsOfOthers(t *testing.T) {
	w := newWorld(t)
	name := alarms.TopicName(clusterID, "autopilot")
	for _, other := range []string{
		name + "2", "x" + name, strings.ToUpper(name), alarms.TopicName(otherClusterID, "autopilot"), alarms.TopicName(clusterID, "other"),
	} {
		_, err := w.cloud.CreateTopic(t.Context(), other, "rds-autopilot autopilot cluster "+clusterID)
		w.must(err)
	}
	topics := w.sim.Topics()
	for _, isKnown := range []bool{true, false} {
		w.topic = v1alpha1.Topic{}
		w.must(w.tryTopic())
		if !isKnown {
			w.topic = v1alpha1.Topic{}
		}
		for range 2 { // the second time there is no topic
			w.must(w.alarms.RemoveTopic(t.Context(), w.topic))
			if diff := cmp.Diff(topics, w.sim.Topics()); diff != "" {
				t.Fatalf("known %t:\n%s", isKnown, diff)
			}
		}
	}
	w.refuse("ListTopics", "DeleteTopic")
	for _, was := range []v1alpha1.Topic{{}, {URN: w.topicURN()}} {
		if err := w.alarms.RemoveTopic(t.Context(), was); err == nil || !strings.Contains(err.Error(), "Not today") {
			t.Errorf("RemoveTopic(%+v) = %v", was, err)
		}
	}
}
