// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simoperator "github.com/mcsps/rds-autopilot/test/sim/operator"
	"github.com/mcsps/rds-autopilot/test/world"
)

// testConsole is a console whose clock stands at 12.34 s, and what it has written.
func testConsole() (*console, *strings.Builder) {
	var text strings.Builder
	t := newConsole(&text)
	t.now = func() time.Time { return t.start.Add(12340 * time.Millisecond) }
	return t, &text
}

func TestLinesAreAligned(t *testing.T) {
	plain, text := testConsole()
	plain.printStep(actorSMN, "orders", "signs %d", 1)
	plain.printStep(actorKubernetes, "", "is there\n")
	plain.speed = 600
	plain.printStep(actorSMN, "", "signs")
	want := "   0:00  smn         orders: signs 1\n   0:00  kubernetes  is there\n   2:03  smn         signs\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("plain (-want +got):\n%s", diff)
	}
}

func TestStoriesArePrintedOneAfterTheOther(t *testing.T) {
	out, text := testConsole()
	step := func(name, what string) { out.printStep(actorCloud, name, "%s", what) }
	out.beginStory("a", "first")
	out.beginStory("b", "second")
	out.beginStory("c", "third")
	step("b", "b1")
	step("a", "a1")
	step("c", "c1")
	if want := "\na  first\n   0:00  cloud       a1\n"; text.String() != want {
		t.Errorf("while the first story is told: %q", text.String())
	}
	out.endStory("b")
	step("b", "late")
	out.endStory("a")
	step("a", "late")
	step("", "about none")
	step("c", "c2")
	out.endStories()
	step("c", "late")
	want := strings.ReplaceAll("\na  first\n* a1\n\nb  second\n* b1\n\nc  third\n* c1\n* about none\n* c2\n", "*", "   0:00  cloud      ")
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}

func alarmBody(t *testing.T, status simcloud.RuleState) []byte {
	t.Helper()
	message, err := json.Marshal(map[string]any{
		"alarm_name": "autopilot_default_orders_61c9c937_storage", "alarm_status": status, "value": 75, "comparison_operator": ">=",
		"count": 5, "period": 1, "alarmValue": []map[string]any{{"value": 70.0}, {"value": 82.5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return simcloud.Envelope{Message: string(message)}.JSON()
}

func TestNarration(t *testing.T) {
	const topic = "urn:smn:eu-de:0:autopilot_default_orders_61c9c937"
	const id = "0123456789abcdef"
	on := true
	line := func(raw string) func(narrator) {
		return func(n narrator) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(raw), &fields); err != nil {
				t.Fatal(err)
			}
			n.line(nil, world.Line{Msg: fields["msg"].(string), Fields: fields})
		}
	}
	send := func(d simcloud.Delivery) func(narrator) {
		d.TopicURN, d.MessageID = topic, id
		return func(n narrator) {
			if fault := n.sending(d); fault != (simcloud.DeliveryFault{}) {
				t.Errorf("the narrator interferes: %+v", fault)
			}
		}
	}
	for _, test := range []struct {
		name string
		do   func(narrator)
		want string // lines without their beginning
	}{
		{"an alarm", send(simcloud.Delivery{Type: simcloud.TypeNotification, Body: alarmBody(t, simcloud.StateAlarm)}),
			"cloud eye   orders: ALARM: storage at 82.5 %, >= 75 % for 5 × 1 min; SMN posts message 01234567"},
		{"its end", send(simcloud.Delivery{Type: simcloud.TypeNotification, Body: alarmBody(t, simcloud.StateOK)}),
			"cloud eye   orders: OK: storage at 82.5 %, the alarm is over"},
		{"another message", send(simcloud.Delivery{Type: simcloud.TypeNotification, Body: []byte("{}")}), "smn         orders: posts message 01234567"},
		{"a confirmation", send(simcloud.Delivery{Type: simcloud.TypeConfirmation}), ""},
		{"a message tried again", send(simcloud.Delivery{Type: simcloud.TypeConfirmation, Attempts: []simcloud.Attempt{{}}}), "smn         orders: tries message 01234567 again"},
		{"a message that was not taken", func(n narrator) {
			n.sent(simcloud.Delivery{TopicURN: topic, MessageID: id, State: simcloud.Pending, Attempts: []simcloud.Attempt{{Status: 503}}})
		}, "smn         orders: message 01234567 was not taken: status 503"},
		{"a message that was taken", func(n narrator) {
			n.sent(simcloud.Delivery{TopicURN: topic, MessageID: id, State: simcloud.Delivered, Attempts: []simcloud.Attempt{{Status: 200}}})
		}, ""},
		{"a stored message", line(`{"msg":"notification","result":"stored","status":200,"messageID":"0123456789","name":"orders"}`),
			"autopilot   orders: message 01234567 is authentic and ours: stored, answers 200"},
		{"a forged message", line(`{"msg":"notification","result":"forged","status":403,"messageID":"0123456789","name":"orders"}`),
			"autopilot   orders: message 01234567 is FORGED: answers 403"},
		{"a foreign message", line(`{"msg":"notification","result":"foreign","status":200}`), "autopilot   a message: foreign, answers 200"},
		{"a decision to do nothing", line(`{"msg":"decision","name":"orders","action":"None","reason":"CapReached","message":"Storage stays"}`), "autopilot   orders: CapReached: Storage stays"},
		{"that all is well", line(`{"msg":"decision","name":"orders","action":"None","reason":"BelowThreshold","message":"Storage stays"}`), ""},
		{"a decision that acts, which its intent has told", line(`{"msg":"decision","name":"orders","action":"GrowVolume","reason":"AlarmInForce","message":"Storage 40 → 50 GB"}`), ""},
		{"an intent", func(n narrator) {
			i := v1alpha1.Intent{Kind: v1alpha1.KindVolume, To: "50", Message: "Storage 40 → 50 GB"}
			n.intended("orders", v1alpha1.Status{}, v1alpha1.Status{Pending: &i})
			n.intended("orders", v1alpha1.Status{Pending: &i}, v1alpha1.Status{Pending: &i})
		}, "autopilot   orders: AlarmInForce: Storage 40 → 50 GB"},
		{"the end of an alarm, as it is stored", func(n narrator) {
			send(simcloud.Delivery{Type: simcloud.TypeNotification, Body: alarmBody(t, simcloud.StateOK)})(n)
			line(`{"msg":"notification","result":"stored","status":200,"messageID":"0123456789","name":"orders"}`)(n)
		}, "cloud eye   orders: OK: storage at 82.5 %, the alarm is over"},
		{"the first and the second leader", func(n narrator) {
			line(`{"msg":"leadership","leading":true}`)(n)
			line(`{"msg":"leadership","leading":true}`)(n)
		}, "autopilot   another replica leads"},
		{"what nobody wants to know", line(`{"msg":"stopping"}`), ""},
		{"what is no JSON", func(n narrator) { n.line(nil, world.Line{Raw: "panic: x"}) }, "autopilot   panic: x"},
		{"a larger volume", func(n narrator) {
			n.act(simoperator.Act{Name: "orders", What: simoperator.Enlarge, From: "40", To: "50"})
		},
			"operator    orders: asks the cloud to enlarge the volume from 40 to 50 GB"},
		{"a postponed snapshot", func(n narrator) {
			n.act(simoperator.Act{Name: "orders", What: simoperator.Postpone, Err: errors.New("x")})
		}, ""},
		{"a patched and trimmed Rds", func(n narrator) {
			old := &otcv1.Rds{Spec: otcv1.Spec{VolumeSize: 40, FlavorRef: "a", Autopilot: &on}}
			now := &otcv1.Rds{Spec: otcv1.Spec{VolumeSize: 50, FlavorRef: "a"}}
			now.Name = "orders"
			n.changed(old, now)
		}, "kubernetes  orders: spec.volumesize of the Rds is 50, was 40|operator    orders: writes every Rds back without spec.autopilot, which it does not know"},
	} {
		console, text := testConsole()
		test.do(narrator{console, []string{"orders", "shop"}, &sync.Map{}})
		got := strings.ReplaceAll(strings.TrimSuffix(text.String(), "\n"), "   0:00  ", "")
		if diff := cmp.Diff(test.want, strings.ReplaceAll(got, "\n", "|")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestWrongArgumentsPrintUsage(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, args := range [][]string{nil, {"dance"}, {"demo", "--fast"}, {"up", "--speed", "0"}} {
		var complaint strings.Builder
		if code := run(t.Context(), args, out, &complaint); code != exitUsage || !strings.Contains(complaint.String(), "Usage: sandbox") {
			t.Errorf("%v: exit code %d, %q", args, code, complaint.String())
		}
	}
	if code := run(t.Context(), []string{"--help"}, out, &strings.Builder{}); code != exitOK {
		t.Errorf("--help: exit code %d", code)
	}
}
