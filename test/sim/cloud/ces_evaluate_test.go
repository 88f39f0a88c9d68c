// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// watch makes a rule on the instance-level dimension of a MySQL instance.
func (w *world) watch(in Instance, metric, topic string, cond Condition) string {
	w.t.Helper()
	body := ruleBody("rule", Dimension{"rds_cluster_id", in.ID}, metric, cond, topic)
	return w.call(201, "ces", "POST", "/alarms", body)["alarm_id"].(string)
}

func (w *world) state(id string) RuleState {
	w.t.Helper()
	for _, r := range w.Rules() {
		if r.ID == id {
			return r.State
		}
	}
	w.t.Fatalf("no rule %s", id)
	return ""
}

// states passes minutes and says after which of them the state changed.
func (w *world) states(id string, minutes int) string {
	w.t.Helper()
	out, was := "", w.state(id)
	for i := range minutes {
		w.minutes(1)
		if is := w.state(id); is != was {
			out += fmt.Sprintf("%d:%s ", i+1, is)
			was = is
		}
	}
	return strings.TrimSpace(out)
}

func decodeAlarm(t *testing.T, e Envelope) alarmMessage {
	t.Helper()
	var m alarmMessage
	d := json.NewDecoder(strings.NewReader(e.Message))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err, e.Message)
	}
	return m
}

// The samples of the minutes 1 to 10 are above the threshold. A sample is seen when its minute has ended.
func TestARuleAlarmsAfterItsCountInARow(t *testing.T) {
	for name, c := range map[string]struct {
		settings Settings
		speed    float64
		cond     Condition
		want     string
	}{
		"raw data":             {Settings{}, 1, condition(1, 3, 0, 75), "4:alarm 12:ok"},
		"raw data, compressed": {Settings{}, 60, condition(1, 3, 0, 75), "4:alarm 12:ok"},
		"late metrics":         {Settings{MetricDelay: 5 * time.Minute}, 1, condition(1, 3, 0, 75), "9:alarm 17:ok"},
		// Minute 0 is below and pulls the first average down; minute 10 alone is above in the third.
		"average of five minutes":   {Settings{}, 1, condition(300, 1, 0, 75), "10:alarm 15:ok"},
		"one high sample is enough": {Settings{}, 1, Condition{300, "max", ">=", 75, "", 3, 0}, "15:alarm 20:ok"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, Options{Settings: c.settings, Speed: c.speed})
			w.clock.advance(w.span(4 * time.Minute)) // so that minute 0 begins a period of five
			in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 20})
			id := w.watch(in, "rds039_disk_util", anyTopic, c.cond)
			w.minutes(1)
			if err := w.SetWorkload(in.ID, Workload{UsedGB: 31}); err != nil {
				t.Fatal(err)
			}
			got := w.statesUntilOK(id, in.ID)
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// statesUntilOK passes 25 minutes, the samples after minute 10 below the threshold.
func (w *world) statesUntilOK(id, instance string) string {
	w.t.Helper()
	out, was := "", StateOK
	for i := 1; i <= 25; i++ {
		w.minutes(1)
		if i == 10 {
			if err := w.SetWorkload(instance, Workload{UsedGB: 20}); err != nil {
				w.t.Fatal(err)
			}
		}
		if is := w.state(id); is != was {
			out += fmt.Sprintf("%d:%s ", i, is)
			was = is
		}
	}
	return strings.TrimSpace(out)
}

func TestNotificationsOfAnAlarmAndItsRepeats(t *testing.T) {
	for suppress, want := range map[int]string{0: "alarm ok", 300: "alarm alarm alarm ok"} {
		t.Run(fmt.Sprint("suppress ", suppress), func(t *testing.T) {
			w, e := start(t, Options{}), receive(t)
			topic := w.subscribed(e)
			in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 35})
			w.watch(in, "rds039_disk_util", topic, condition(1, 1, suppress, 75))
			w.minutes(12)
			if err := w.SetWorkload(in.ID, Workload{UsedGB: 5}); err != nil {
				t.Fatal(err)
			}
			w.minutes(12)
			var got []string
			for _, m := range e.messages() {
				got = append(got, string(decodeAlarm(t, m).AlarmStatus))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%v, want %s", got, want)
			}
		})
	}
}

func TestAnAlarmMessageHasTheClassicFormat(t *testing.T) {
	w, e := start(t, Options{}), receive(t)
	topic := w.subscribed(e)
	in, err := w.AddInstance(Instance{Name: "db", Flavor: "rds.mysql.c2.medium", VolumeGB: 40, Workload: Workload{UsedGB: 35}})
	if err != nil {
		t.Fatal(err)
	}
	id := w.watch(in, "rds039_disk_util", topic, condition(1, 2, 900, 75))
	begin := w.clock.Now()
	w.minutes(4)
	if len(e.messages()) != 1 {
		t.Fatal(e.messages())
	}
	got := e.messages()[0]
	if !strings.HasPrefix(got.Subject, "[Major Alarm]From Cloud Eye: The Storage Space Usage of Relational Database Service-MySQL Instances \"db\"") {
		t.Error(got.Subject)
	}
	if !strings.Contains(got.Message, `"comparison_operator":"\u003e="`) || strings.ContainsAny(got.Message, "\n>") {
		t.Error("not compact, or > is not escaped:", got.Message)
	}
	m := decodeAlarm(t, got)
	m.SMSContent, m.Template = "", template{}
	want := alarmMessage{
		MessageType: "alarm", AlarmID: id, AlarmName: "rule", AlarmStatus: "alarm", Time: begin.Add(3 * time.Minute).UnixMilli(),
		Namespace: "SYS.RDS", MetricName: "rds039_disk_util", Dimension: "rds_cluster_id:" + in.ID, Period: 1, Filter: "Raw data",
		ComparisonOperator: ">=", Value: 75, Count: 2, AlarmValue: []alarmValue{
			{begin.Add(time.Minute).UnixMilli(), 87.5}, {begin.Add(2 * time.Minute).UnixMilli(), 87.5},
		},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	subject, text, err := w.AlarmMessage(id, StateOK, 61, begin, begin)
	if err != nil || !strings.HasSuffix(subject, "has changed to OK from Alarm.") || !strings.Contains(text, `"alarm_status":"ok"`) {
		t.Error(subject, text, err)
	}
}

// The examples of the real cloud hold no field that this message lacks, and none is of another type.
func TestMessageHasTheFieldsOfTheExamples(t *testing.T) {
	for _, name := range []string{"notification_alarm", "notification_ok", "notification_alarm_pg_instance_level"} {
		var e Envelope
		if err := json.Unmarshal(readFile(t, name+".json"), &e); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(decodeAlarm(t, e))
		if err != nil || string(again) != e.Message {
			t.Errorf("%s:\n%s\n%s", name, e.Message, again)
		}
	}
}

func TestRuleWithoutDataBecomesInsufficientData(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.pg.c2.medium", 40, Workload{UsedGB: 39})
	rule := func(d Dimension) string {
		return w.call(201, "ces", "POST", "/alarms", ruleBody("r", d, "rds039_disk_util", condition(1, 1, 0, 75), anyTopic))["alarm_id"].(string)
	}
	right := rule(Dimension{"postgresql_cluster_id", in.ID})
	node := rule(Dimension{"postgresql_instance_id", in.Nodes[0].ID})
	wrong := rule(Dimension{"rds_cluster_id", in.ID})
	w.minutes(3)
	for id, want := range map[string]RuleState{right: StateAlarm, node: StateAlarm, wrong: StateOK} {
		if got := w.state(id); got != want {
			t.Errorf("%v: %s, want %s", slices.Index([]string{right, node, wrong}, id), got, want)
		}
	}
	if got, want := w.states(wrong, 180), "177:insufficient_data"; got != want { // three hours after it was made
		t.Errorf("without a series: %s, want %s", got, want)
	}
	w.RemoveInstance(in.ID)
	if got, want := w.states(right, 181), "180:insufficient_data"; got != want {
		t.Errorf("after the instance went: %s, want %s", got, want)
	}
}
