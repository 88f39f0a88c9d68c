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

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
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

func (d *doctor) create(ctx context.Context) Line {
	trigger, repeat := v1alpha1.Trigger{ThresholdPercent: 1}, int32(300)
	uncut := context.WithoutCancel(ctx) // an object that is created after the interruption would stay
	if err := d.kube.Create(uncut, &v1alpha1.RdsAutopilot{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: Name, Annotations: map[string]string{Annotation: explanation}},
		Spec: v1alpha1.Spec{
			Mode: v1alpha1.ModeRecommend, Apply: v1alpha1.ApplyCloud, InstanceID: d.Instance,
			Flavor: v1alpha1.Flavor{
				CPU: trigger, Memory: trigger, Alarm: v1alpha1.FlavorAlarm{PeriodSeconds: 1, Count: 1, RepeatSeconds: &repeat},
			},
		},
	}); err != nil {
		return failed(kubeAdvice(err), "%v", err)
	}
	return ok("RdsAutopilot %s/%s, mode Recommend", d.namespace, Name)
}

func (d *doctor) wait(ctx context.Context, most time.Duration, done func(*v1alpha1.RdsAutopilot) bool) (err error) {
	isDone := until(ctx, most, func() bool {
		if err = d.read(ctx); err != nil {
			return errors.Is(err, autopilot.ErrGone)
		}
		return done(d.seen)
	})
	if d.lost = err; err == nil && !isDone {
		return fmt.Errorf("not within %s", most)
	}
	return err
}

func (d *doctor) read(ctx context.Context) error {
	a, err := d.kube.Rehearsal(ctx, d.namespace, Name)
	if err != nil {
		return err
	}
	d.seen = a
	for _, r := range a.Status.Alarms.Rules {
		d.ruleIDs[r.AlarmID] = true
	}
	return nil
}

func (d *doctor) armed() metav1.Condition {
	return *cmp.Or(meta.FindStatusCondition(d.seen.Status.Conditions, v1alpha1.ConditionArmed), &metav1.Condition{})
}

// hopeless returns what to do about a reason of Armed that does not change by waiting; empty for the others.
func hopeless(reason string) string {
	return map[string]string{
		string(autopilot.ReasonNotEnabled): "Run the service with --mode=Auto or Recommend: with Off it removes all alarms",
		string(autopilot.ReasonNotAllowed): "Run the service and doctor with the same version and the same --lease-namespace",
		autopilot.SubscriptionRefused:      "Correct --public-url as SMN says: it accepts public addresses only",
	}[reason]
}

func (d *doctor) waitArmed(ctx context.Context) Line {
	if err := d.wait(ctx, observeLimit, func(a *v1alpha1.RdsAutopilot) bool {
		return d.armed().Reason != "" || len(a.Status.Alarms.Rules) > 0
	}); err != nil {
		return failed("Check the pods of the service and the log of the leader, and that --lease-namespace names its namespace",
			"No running service has looked at the RdsAutopilot: %v", err)
	}
	err := d.wait(ctx, armLimit, func(*v1alpha1.RdsAutopilot) bool {
		c := d.armed()
		return c.Status == metav1.ConditionTrue || hopeless(c.Reason) != "" || grant(c.Message) != ""
	})
	c := d.armed()
	if err == nil && c.Status == metav1.ConditionTrue {
		return ok("%s", c.Message)
	}
	do := cmp.Or(grant(c.Message), hopeless(c.Reason), "Look at the log of the leader")
	if c.Reason == autopilot.SubscriptionPending {
		do = d.undelivered()
	}
	return failed(do, "%s: %s%s", c.Reason, c.Message, d.warnings(ctx))
}

func (d *doctor) warnings(ctx context.Context) string {
	notes, err := d.kube.Warnings(ctx, d.seen)
	if err != nil || len(notes) == 0 {
		return ""
	}
	return ". Warning: " + strings.Join(notes, "; ")
}

func (d *doctor) undelivered() string {
	if d.url.State == Note {
		return d.url.Do + " (" + d.url.Text + ")"
	}
	return "If a Warning names a host, set --smn-confirm-hosts to it. Else look for \"notification\" in the log of the service: " +
		"without a line, SMN has not reached the URL (public DNS, load balancer, firewall); with result forged, set --smn-cert-hosts"
}

func (d *doctor) checkTopic(ctx context.Context) Line {
	t, err := d.kube.LiveTopic(ctx)
	switch {
	case err != nil:
		return failed(kubeAdvice(err), "%v", err)
	case t == (v1alpha1.Topic{}):
		return failed("The leader writes it again. If it stays away, the leader's log has the reason, such as a missing right on ConfigMaps",
			"Somebody has deleted the ConfigMap %s", k8s.TopicConfigMap)
	case !otc.SameEndpoint(t.URL, d.PublicURL.String()):
		return failed("Give doctor the same --public-url as the service", "%s delivers to %s, and not to %s", t.URN, t.URL,
			d.PublicURL.Redacted())
	}
	return ok("%s delivers to %s: %s", t.URN, d.PublicURL.Redacted(), t.State)
}

func (d *doctor) waitSignal(ctx context.Context) Line {
	err := d.wait(ctx, alarmLimit, func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Intake.Signals) > 0 })
	if err == nil {
		s := d.seen.Status.Intake.Signals[0]
		return ok("%s at %s %% arrived, was verified and stored: message %s", s.Metric, s.ValuePercent, s.MessageID)
	}
	do, states := "Check in Cloud Eye's console whether the instance has data. A new one needs 10 minutes", ""
	for id := range d.ruleIDs {
		r, unread := d.cloud.Rule(ctx, id)
		if errors.Is(unread, otc.ErrNotFound) {
			continue // the service has replaced it
		} else if unread != nil {
			return failed(cmp.Or(grant(unread.Error()), tryAgain), "No alarm was stored, and a rule cannot be read: %v", unread)
		}
		states += ". Cloud Eye's rule of " + r.Metric + " is in " + string(r.State)
		if r.State == v1alpha1.StateAlarm {
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
	isForeign, last := false, error(nil)
	isGone := until(ctx, removeLimit, func() bool {
		if last = d.read(ctx); errors.Is(last, autopilot.ErrGone) {
			last = d.rulesLeft(ctx)
			return last == nil
		}
		if last != nil {
			return false
		}
		if isForeign = d.seen.Annotations[Annotation] == ""; !isForeign && d.seen.DeletionTimestamp.IsZero() {
			last = d.kube.DeleteRehearsal(ctx, d.seen)
		}
		return isForeign
	})
	switch {
	case isForeign:
		return failed("Rename it", "RdsAutopilot %s/%s is not doctor's: it lacks the annotation %s", d.namespace, Name, Annotation)
	case !isGone:
		return failed("Keep the service running: it removes the rules of a deleted RdsAutopilot. Then run doctor again",
			"RdsAutopilot %s/%s or a rule of it is still there (%v)", d.namespace, Name, last)
	}
	return ok("Nothing of doctor is in the cluster or in the cloud")
}

// rulesLeft returns an error if the cloud has a rule of the rehearsal of this cluster, by its name: a killed run knew more
// rules than this one.
func (d *doctor) rulesLeft(ctx context.Context) error {
	cluster, idErr := d.kube.ClusterID(ctx)
	rules, err := d.cloud.ListRules(ctx)
	for _, r := range rules {
		namespace, name, _ := alarms.ParseRuleName(r.Name)
		isNamed := namespace == d.namespace && name == Name && idErr == nil && strings.Contains(r.Description, cluster)
		if isNamed || d.ruleIDs[r.ID] {
			return fmt.Errorf("the alarm rule %s is still there", r.Name)
		}
	}
	return errors.Join(err, idErr)
}
