// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// narrator turns what happens in a world into lines. It checks nothing.
type narrator struct {
	*console
	names []string // of the databases

	quiet *sync.Map // ids of messages that nobody wants to hear more of
}

func newNarrator(out *console) narrator { return narrator{console: out, quiet: &sync.Map{}} }

// options are those of a world whose events are printed.
func (n narrator) options() world.Options {
	return world.Options{
		Cloud:  simcloud.Options{DeliveryFault: n.sending},
		OnLine: n.line,
	}
}

// about finds the database in the name of the rule whose alarm a message has.
func (n narrator) about(d simcloud.Delivery) string {
	for _, name := range n.names {
		if bytes.Contains(d.Body, []byte("_"+name+"_")) {
			return name
		}
	}
	return ""
}

// sending is called before each attempt to deliver a message. It prints the first one, and lets all pass.
func (n narrator) sending(d simcloud.Delivery) simcloud.DeliveryFault {
	name := n.about(d)
	if len(d.Attempts) > 0 {
		return simcloud.DeliveryFault{}
	}
	if d.Type != simcloud.TypeNotification {
		n.quiet.Store(short(d.MessageID), true) // it shows in "armed"
		return simcloud.DeliveryFault{}
	}
	var envelope simcloud.Envelope
	var alarm struct {
		Status     simcloud.RuleState `json:"alarm_status"`
		Name       string             `json:"alarm_name"`
		Value      float64            `json:"value"`
		Operator   string             `json:"comparison_operator"`
		Count      int                `json:"count"`
		Period     int                `json:"period"`
		AlarmValue []struct {
			Value float64 `json:"value"`
		} `json:"alarmValue"`
	}
	if json.Unmarshal(d.Body, &envelope) != nil || json.Unmarshal([]byte(envelope.Message), &alarm) != nil || len(alarm.AlarmValue) == 0 {
		n.printStep(actorSMN, name, "posts message %s", short(d.MessageID))
		return simcloud.DeliveryFault{}
	}
	metric := alarm.Name[strings.LastIndexByte(alarm.Name, '_')+1:]
	value := alarm.AlarmValue[len(alarm.AlarmValue)-1].Value
	if alarm.Status == simcloud.StateAlarm {
		n.printStep(actorCloudEye, name, "ALARM: %s at %.1f %%, %s %.0f %% for %d × %d min; SMN posts message %s",
			metric, value, alarm.Operator, alarm.Value, alarm.Count, max(alarm.Period/60, 1), short(d.MessageID))
	} else {
		n.quiet.Store(short(d.MessageID), true)
		n.printStep(actorCloudEye, name, "%s: %s at %.1f %%, the alarm is over", strings.ToUpper(string(alarm.Status)), metric, value)
	}
	return simcloud.DeliveryFault{}
}

func short(id string) string { return id[:min(len(id), 8)] }

// line prints what the service logs, as far as a reader wants to know.
func (n narrator) line(_ *world.Process, l world.Line) {
	name := l.Field("name")
	switch {
	case l.Fields == nil:
		n.printStep(actorAutopilot, "", "%s", l.Raw)
	case l.Msg == "armed":
		n.printStep(actorAutopilot, name, "armed: topic, confirmed subscription and alarm rules are in place")
	case strings.HasPrefix(l.Msg, "notification "):
		n.notification(l)
	case l.Msg == "decision" && l.Field("action") == string(autopilot.ActionNone):
		switch autopilot.Reason(l.Field("reason")) {
		case autopilot.ReasonChangePending, autopilot.ReasonBelowThreshold, autopilot.ReasonAlarmCleared: // all is well
		default:
			n.printStep(actorAutopilot, name, "%s: %s", l.Field("reason"), l.Field("message"))
		}
	case l.Level == "warn" || l.Level == "error":
		n.printStep(actorAutopilot, name, "%s: %s", l.Msg, l.Field("error"))
	}
}

func (n narrator) notification(l world.Line) {
	message, status := "message "+short(l.Field("messageID")), l.Fields["status"]
	if l.Field("messageID") == "" {
		message = "a message"
	}
	if _, quiet := n.quiet.Load(short(l.Field("messageID"))); quiet && status == float64(http.StatusOK) {
		return
	}
	switch result := l.Field("result"); result {
	case "stored":
		n.printStep(actorAutopilot, l.Field("name"), "%s is authentic and ours: stored, answers %v", message, status)
	case "forged":
		n.printStep(actorAutopilot, l.Field("name"), "%s is FORGED: answers %v", message, status)
	default:
		n.printStep(actorAutopilot, l.Field("name"), "%s: %s, answers %v", message, result, status)
	}
}

// watch prints what becomes of a database that was just created, until the context ends: in Kubernetes and in the cloud.
func (n narrator) watch(ctx context.Context, db *world.DB, created *otcv1.Rds) {
	var watches sync.WaitGroup
	defer watches.Wait()
	watches.Go(func() {
		last := created
		db.WatchRds(ctx, func(r *otcv1.Rds) {
			n.changed(last, r)
			last = r
		})
	})
	watches.Go(func() {
		var last v1alpha1.Status
		db.WatchAutopilot(ctx, func(a *v1alpha1.RdsAutopilot) {
			n.intended(a.Name, last, a.Status)
			last = a.Status
		})
	})
	n.watchCloud(ctx, db)
}

func (n narrator) changed(old, now *otcv1.Rds) {
	printIfChanged := func(field, from, to string) {
		if from != to {
			n.printStep(actorKubernetes, now.Name, "spec.%s of the Rds is %s, was %s", field, to, from)
		}
	}
	printIfChanged("volumesize", strconv.Itoa(int(old.Spec.VolumeSize)), strconv.Itoa(int(now.Spec.VolumeSize)))
	printIfChanged("flavorref", old.Spec.FlavorRef, now.Spec.FlavorRef)
	if old.Spec.Autopilot != nil && now.Spec.Autopilot == nil && now.Name == n.names[0] { // once is enough
		n.printStep(actorOperator, now.Name, "writes every Rds back without spec.autopilot, which it does not know")
	}
}

// intended prints a change as it is stored, which is before anything is patched. The log has it after that.
func (n narrator) intended(name string, old, now v1alpha1.Status) {
	for _, d := range now.Decisions {
		isNews := !slices.ContainsFunc(old.Decisions, func(o v1alpha1.DecisionRecord) bool { return o.Time.Equal(&d.Time) && o.To == d.To })
		if isNews && d.Reason == string(autopilot.ReasonAlarmInForce) {
			n.printStep(actorAutopilot, name, "%s: %s", d.Reason, d.Message)
		}
	}
}

// watchCloud prints the changes of an instance. It reads the instance ten times a second.
func (n narrator) watchCloud(ctx context.Context, db *world.DB) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := db.Instance()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := db.Instance()
		switch now.Status {
		case last.Status:
		case simcloud.StatusModifying:
			n.printStep(actorOperator, now.Name, "requests the change from the cloud")
		default:
			n.printStep(actorCloud, now.Name, "the instance is %s: %s", now.Status, size(now))
		}
		last = now
	}
}

// size is an instance in words.
func size(in simcloud.Instance) string {
	return fmt.Sprintf("%d GB, %s (%d vCPUs, %d GB)", in.VolumeGB, in.Flavor, in.VCPUs, in.MemoryGB)
}
