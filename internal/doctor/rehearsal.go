// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// Name is that of the RdsAutopilot. It is fixed, so that a run finds what a killed one has left.
	Name = "rds-autopilot-doctor"
	// Annotation marks an RdsAutopilot of doctor. Doctor deletes no other one.
	Annotation = v1alpha1.Group + "/rehearsal"

	explanation = "Created by rds-autopilot doctor. It changes nothing. Delete it, or run doctor again, which deletes it"

	// pause is the time between two looks at the RdsAutopilot.
	pause = time.Second
	// observeLimit is 2 minutes because another replica may have to take over the lease first, in 20 seconds.
	observeLimit = 2 * time.Minute
	// armLimit is 10 minutes because SMN gives no promise of time for its confirmation. Usually it takes seconds.
	armLimit = 10 * time.Minute
	// alarmLimit is 20 minutes because values appear up to 10 minutes late in Cloud Eye.
	alarmLimit = 20 * time.Minute
	// decisionLimit is 3 minutes because a decision reads a few lists, and is tried again after a minute.
	decisionLimit = 3 * time.Minute
	// removeLimit is 5 minutes because the service removes rules, subscription and topic one by one.
	removeLimit = 5 * time.Minute
)

// newRehearsal returns an RdsAutopilot that is in alarm as soon as Cloud Eye evaluates its rules.
func newRehearsal(namespace, instance string) *v1alpha1.RdsAutopilot {
	trigger, repeat := v1alpha1.Trigger{ThresholdPercent: 1}, int32(300)
	return &v1alpha1.RdsAutopilot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name, Annotations: map[string]string{Annotation: explanation},
		},
		Spec: v1alpha1.Spec{
			Mode: v1alpha1.ModeRecommend, Apply: v1alpha1.ApplyCloud, InstanceID: instance,
			Flavor: v1alpha1.Flavor{
				CPU: trigger, Memory: trigger, Alarm: v1alpha1.FlavorAlarm{PeriodSeconds: 1, Count: 1, RepeatSeconds: &repeat},
			},
		},
	}
}

// rehearse creates the RdsAutopilot, waits for what the service does with it, and removes it.
func (d *doctor) rehearse(ctx context.Context) {
	_ = d.step(ctx, "created", d.create) && d.step(ctx, "observed", d.waitObserved) && d.step(ctx, "armed", d.waitArmed) &&
		d.step(ctx, "topic", d.checkTopic) && d.step(ctx, "alarm", d.waitSignal) && d.step(ctx, "decision", d.waitDecision)
	d.step(context.WithoutCancel(ctx), "removed", d.removeRehearsal)
}

func (d *doctor) create(ctx context.Context) Line {
	if err := d.kube.CreateRehearsal(ctx, newRehearsal(d.namespace, d.Instance)); err != nil {
		return failed(needsRights, "%v", err)
	}
	return ok("RdsAutopilot %s/%s, mode Recommend", d.namespace, Name)
}

// wait waits until the rehearsal fulfils a condition. It returns an error if it does not, or if somebody deletes it.
func (d *doctor) wait(ctx context.Context, most time.Duration, done func(*v1alpha1.RdsAutopilot) bool) error {
	var err error
	switch isDone := d.until(ctx, most, func() bool {
		var a *v1alpha1.RdsAutopilot
		if a, err = d.read(ctx); err != nil {
			return errors.Is(err, autopilot.ErrGone)
		}
		return done(a)
	}); {
	case errors.Is(err, autopilot.ErrGone):
		return errors.New("somebody has deleted the RdsAutopilot, perhaps another run of doctor")
	case !isDone && err == nil:
		return fmt.Errorf("not within %s", most)
	}
	return err
}

// read reads the rehearsal, and keeps the ids of its rules.
func (d *doctor) read(ctx context.Context) (*v1alpha1.RdsAutopilot, error) {
	a, err := d.kube.Rehearsal(ctx, d.namespace, Name)
	if err != nil {
		return nil, err
	}
	for _, r := range a.Status.Alarms.Rules {
		d.ruleIDs[r.AlarmID] = true
	}
	d.seen = a
	return a, nil
}

func armed(a *v1alpha1.RdsAutopilot) metav1.Condition {
	if c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (d *doctor) waitObserved(ctx context.Context) Line {
	if err := d.wait(ctx, observeLimit, func(a *v1alpha1.RdsAutopilot) bool {
		return armed(a).Reason != "" || len(a.Status.Alarms.Rules) > 0
	}); err != nil {
		return failed("Check the pods of the service and the log of the leader, and that --lease-namespace names its namespace",
			"No running service has looked at the RdsAutopilot: %v", err)
	}
	return ok("The service has seen it")
}

// hopeless are the reasons of Armed that do not change by waiting.
var hopeless = map[string]string{
	string(autopilot.ReasonNotEnabled): "Run the service with --mode=Auto or Recommend: with Off it removes all alarms",
	string(autopilot.ReasonNotAllowed): "Run the service and doctor with the same version and the same --lease-namespace",
	autopilot.QuotaExceeded:            "Ask for a higher quota of topics, subscriptions or alarm rules, as the message says",
	autopilot.SubscriptionRefused:      "Correct --public-url as SMN says: it accepts public addresses only",
}

func (d *doctor) waitArmed(ctx context.Context) Line {
	err := d.wait(ctx, armLimit, func(a *v1alpha1.RdsAutopilot) bool {
		c := armed(a)
		return c.Status == metav1.ConditionTrue || hopeless[c.Reason] != "" || grant(c.Message) != ""
	})
	c := armed(d.seen)
	if err == nil && c.Status == metav1.ConditionTrue {
		return ok("%s", c.Message)
	}
	do := cmp.Or(hopeless[c.Reason], grant(c.Message), "Look at the log of the leader")
	if c.Reason == autopilot.SubscriptionPending {
		do = d.undelivered()
	}
	text := c.Reason + ": " + c.Message
	if err != nil {
		text = err.Error() + ": " + text
	}
	return failed(do, "%s%s", text, d.warnings(ctx))
}

// warnings returns the Warning events of the rehearsal, such as a confirmation host that is not allowed.
func (d *doctor) warnings(ctx context.Context) string {
	notes, err := d.kube.Warnings(ctx, d.seen)
	if err != nil {
		notes = []string{err.Error()}
	}
	if len(notes) == 0 {
		return ""
	}
	return ". Warning: " + strings.Join(notes, "; ")
}

// undelivered returns what to do if no message of SMN was accepted.
func (d *doctor) undelivered() string {
	if d.url.State == Note {
		return d.url.Do + " (" + d.url.Text + ")"
	}
	return "A Warning in this line has the cause: --smn-confirm-hosts names a host that it shows. Without one, SMN has not reached " +
		d.PublicURL.Redacted() + " (public DNS, load balancer, firewall), or the receiver has refused its message: its log has a line for each, result forged names --smn-cert-hosts"
}

// checkTopic reads from the cloud what the status says of topic and subscription.
func (d *doctor) checkTopic(ctx context.Context) Line {
	urn := d.seen.Status.Alarms.TopicURN
	all, err := d.cloud.TopicSubscriptions(ctx, urn)
	if err != nil {
		return failed(cmp.Or(grant(err.Error()), tryAgain), "%v", err)
	}
	for _, s := range all {
		if otc.SameEndpoint(s.Endpoint, d.PublicURL.String()) && s.Status == otc.SubscriptionConfirmed {
			return ok("%s delivers to %s", urn, s.Endpoint)
		}
	}
	return failed("Give doctor the same --public-url as the service", "The topic %s has no confirmed subscription of %s", urn,
		d.PublicURL.Redacted())
}

func (d *doctor) waitSignal(ctx context.Context) Line {
	err := d.wait(ctx, alarmLimit, func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Intake.Signals) > 0 })
	if err == nil {
		s := d.seen.Status.Intake.Signals[0]
		return ok("%s at %s %% arrived, was verified and stored: message %s", s.Metric, s.ValuePercent, s.MessageID)
	}
	do, states := "Check in Cloud Eye's console whether the instance has data. A new one needs 10 minutes", ""
	for id := range d.ruleIDs {
		r, ruleErr := d.cloud.Rule(ctx, id)
		if ruleErr != nil {
			continue
		}
		if states += ". Cloud Eye's rule of " + r.Metric + " is in " + r.State; r.State == string(v1alpha1.StateAlarm) {
			do = d.undelivered()
		}
	}
	return failed(do, "No alarm was stored: %v%s%s", err, states, d.warnings(ctx))
}

func (d *doctor) waitDecision(ctx context.Context) Line {
	if err := d.wait(ctx, decisionLimit, func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Decisions) > 0 }); err != nil {
		return failed("Look at the log of the leader", "No decision was recorded: %v%s", err, d.warnings(ctx))
	}
	r := d.seen.Status.Decisions[0]
	return ok("%s (%s): %s", r.Reason, r.Metric, r.Message)
}

// removeRehearsal deletes the rehearsal of this run or of a killed one, and waits until its rules are gone.
func (d *doctor) removeRehearsal(ctx context.Context) Line {
	existed, foreign := false, false
	var last error
	gone := d.until(ctx, removeLimit, func() bool {
		var a *v1alpha1.RdsAutopilot
		a, last = d.read(ctx)
		switch {
		case errors.Is(last, autopilot.ErrGone):
			last = d.rulesLeft(ctx)
			return last == nil
		case last != nil:
			return false
		case a.Annotations[Annotation] == "":
			foreign = true
			return true
		}
		existed = true
		if last = fmt.Errorf("RdsAutopilot %s/%s is still there", d.namespace, Name); a.DeletionTimestamp.IsZero() {
			last = cmp.Or(d.kube.DeleteAutopilot(ctx, a), last)
		}
		return false
	})
	switch {
	case foreign:
		return failed("Rename it", "RdsAutopilot %s/%s is not doctor's: it lacks the annotation %s", d.namespace, Name, Annotation)
	case !gone:
		return failed("Keep the service running: it removes the rules of a deleted RdsAutopilot. Then run doctor again", "%v", last)
	case !existed && len(d.ruleIDs) == 0:
		return ok("Nothing is left of an earlier run")
	}
	return ok("The RdsAutopilot and its alarm rules are gone")
}

// rulesLeft returns an error while a rule of the rehearsal exists.
func (d *doctor) rulesLeft(ctx context.Context) error {
	if len(d.ruleIDs) == 0 {
		return nil
	}
	rules, err := d.cloud.Rules(ctx)
	if err != nil {
		return err
	}
	for _, r := range rules {
		if d.ruleIDs[r.ID] {
			return fmt.Errorf("the alarm rule %s is still there", r.Name)
		}
	}
	return nil
}
