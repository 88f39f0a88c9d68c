// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestTopicIsStoredForAllReplicas(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	leader, replica := k.connect(t, k.namespace), k.connect(t, k.namespace)
	run(t, leader)
	run(t, replica)
	if stored, err := leader.LiveTopic(t.Context()); err != nil || stored != (autopilotv1.Topic{}) {
		t.Fatalf("before the first write: %+v, %v", stored, err)
	}
	requested := metav1.NewTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	full := autopilotv1.Topic{URN: "urn:smn:a", SubscriptionURN: "urn:smn:a:1", URL: "https://autopilot.example.com/smn",
		State: autopilotv1.SubscriptionPending, Message: "why", RequestedTime: &requested}
	for _, want := range []autopilotv1.Topic{{URN: "urn:smn:a"}, full, {URN: "urn:smn:b", State: autopilotv1.SubscriptionConfirmed}, {}} {
		if err := leader.WriteTopic(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if got := leader.Topic(); got.URN != want.URN {
			t.Errorf("the cache of the writer has %+v", got)
		}
		stored, err := leader.LiveTopic(t.Context())
		if diff := cmp.Diff(want, stored); diff != "" || err != nil {
			t.Errorf("stored (-want +got), %v:\n%s", err, diff)
		}
		eventually(t, "the other replica has it", func() bool { return cmp.Diff(want, replica.Topic()) == "" })
	}
	if err := leader.WriteTopic(t.Context(), autopilotv1.Topic{}); err != nil {
		t.Errorf("removed twice: %v", err)
	}
}
