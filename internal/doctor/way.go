// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The other waits are Options.Wait divided by these numbers.
const (
	// settlePart is for the running service, until its cache has what doctor wrote: 5 seconds of 20 minutes.
	settlePart = 240
	// confirmPart is for a confirmation after the second Subscribe.
	confirmPart = 10
	// listedPart is until the list of subscriptions shows the confirmation.
	listedPart = 20
	// readPart is between two reads of a rule in alarm.
	readPart = 10
	// silentPart is for the message of an alarm that Cloud Eye shows already.
	silentPart = 4
	// againPart is until SMN sends a refused message again.
	againPart = 2
)

func (x *examination) checkTopic(ctx context.Context) []Result {
	name := x.prefix() + x.run
	urn, err := x.api.CreateTopic(ctx, name, description)
	if err != nil {
		return refused(err)
	}
	x.topicURN = urn
	_, x.seen.topicAgain = x.api.CreateTopic(ctx, name, description)
	_, err = x.api.Topic(ctx, urn)
	return unless(refused(err, x.api.UpdateTopic(ctx, urn, description+".")), "%s", urn)
}

// description marks doctor's objects for people who find them in the console.
const description = "rds-autopilot doctor: removed automatically"

// checkSubscription subscribes twice. The receiver does not expect the first confirmation and ignores it, so that a
// second one shows whether SMN sends it again.
func (x *examination) checkSubscription(ctx context.Context) []Result {
	if x.Listen == nil && x.kube == nil {
		return result(Unseen, "Give --listen, so that doctor receives the messages",
			"Without Kubernetes, doctor cannot read the messages of the running service")
	}
	if x.mailbox == nil {
		var err error
		if x.mailbox, err = openMailbox(ctx, x.kube.api, x.Namespace, x.run); err != nil {
			return result(Failed, "Apply deploy/rbac.yaml, or run doctor in the service's pod", "%v", err)
		}
	}
	if failed := x.subscribe(ctx); failed != nil {
		return failed
	}
	const settling = "the service to see the change"
	x.pause(ctx, x.Wait/settlePart, settling)
	if err := x.expect(ctx); err != nil {
		return result(Failed, "Update the CRDs: kubectl apply -f deploy/crds", "%v", err)
	}
	x.pause(ctx, x.Wait/settlePart, settling)
	if failed := x.subscribe(ctx); failed != nil {
		return failed
	}
	x.seen.existsCode, x.seen.subscribedTwice = x.lastAnswer("Subscribe").Code, true
	again := x.confirmed(ctx, x.Wait/confirmPart)
	x.seen.again = &again
	if !again && ctx.Err() == nil {
		if failed := x.subscribeAnew(ctx); failed != nil {
			return failed
		}
		x.confirmed(ctx, x.Wait/2)
	}
	stored, c := x.confirmation(), x.seen.confirmation
	switch {
	case ctx.Err() != nil:
		return result(Failed, "", "Doctor was interrupted before the confirmation arrived")
	case stored == nil && c == nil:
		return x.noConfirmation()
	case stored == nil:
		return result(Failed, "See the lines below for the assumption that does not hold, and docs/cloud-facts.md for the next step",
			"The confirmation arrived, but the receiver did not accept it: %s",
			cmp.Or(c.problem, "SMN did not answer the call of its link"))
	}
	if !x.until(ctx, x.Wait/listedPart, "the subscription to be listed as confirmed", x.listedAsConfirmed) {
		return result(Failed, "Check the subscription in the console",
			"The receiver has called the confirmation link, but SMN does not list the subscription as confirmed")
	}
	return ok("Confirmed: a signed message arrived after %s, with a certificate of %s",
		stored.ReceivedTime.Sub(stored.SentTime.Time).Truncate(time.Second), x.certHost())
}

func (x *examination) noConfirmation() []Result {
	for _, m := range x.seen.messages {
		if m.malformed {
			return result(Failed, "See the lines below for the assumption that does not hold",
				"A message arrived that is not in SMN's form: %s", m.problem)
		}
	}
	do := "Check DNS, firewall and Ingress of the public URL, and whether the service runs with the same --public-url and watches this namespace. Its log has a line for each message that it refuses. With --listen, doctor receives the messages itself and explains a refusal"
	if x.Listen != nil {
		do = "Check DNS, firewall and Ingress of the public URL, and whether it leads to the address of --listen"
	}
	return result(Failed, do, "No confirmation was accepted within %s", x.Wait/confirmPart+x.Wait/2)
}

// subscribe returns nil, or the result of a failed call.
func (x *examination) subscribe(ctx context.Context) []Result {
	_, err := x.api.Subscribe(ctx, x.topicURN, x.PublicURL.Scheme, x.PublicURL.String(), description)
	return refused(err)
}

// subscribeAnew replaces the subscription whose confirmation did not arrive by a new one.
func (x *examination) subscribeAnew(ctx context.Context) []Result {
	if x.seen.confirmation != nil { // it arrived and was refused, as another one would be
		return nil
	}
	all, err := x.api.TopicSubscriptions(ctx, x.topicURN)
	errs := []error{err}
	for _, s := range all {
		errs = append(errs, x.api.Unsubscribe(ctx, s.URN))
	}
	if failed := refused(errs...); failed != nil {
		return failed
	}
	return x.subscribe(ctx)
}

// confirmed waits for a confirmation that the receiver has accepted, or refused for good.
func (x *examination) confirmed(ctx context.Context, most time.Duration) bool {
	return x.until(ctx, most, "the confirmation", func(ctx context.Context) bool {
		x.readMailbox(ctx)
		return x.confirmation() != nil || x.seen.confirmation != nil && x.seen.confirmation.problem != ""
	})
}

// readMailbox reads what has arrived. It records an error only for the progress, because the next read may
// succeed.
func (x *examination) readMailbox(ctx context.Context) {
	intake, messages, err := x.mailbox.read(ctx)
	x.mailboxErr = err
	if err == nil {
		x.seen.intake = intake
		x.keepMessages(messages)
	}
}

// listedAsConfirmed reads our subscription from SMN's list.
func (x *examination) listedAsConfirmed(ctx context.Context) bool {
	all, err := x.api.TopicSubscriptions(ctx, x.topicURN)
	if err != nil || len(all) == 0 {
		return false
	}
	x.seen.subscription = &all[0]
	return all[0].Status == otc.SubscriptionConfirmed
}

// expect writes all objects created so far to the mailbox, so that the receiver recognizes their messages.
func (x *examination) expect(ctx context.Context) error {
	a := v1alpha1.Alarms{TopicURN: x.topicURN}
	var in *v1alpha1.Instance
	if x.instance != nil {
		in = &v1alpha1.Instance{ID: x.instance.ID}
		for _, n := range x.instance.Nodes {
			in.NodeIDs = append(in.NodeIDs, n.ID)
		}
	}
	if x.made.ID != "" {
		a.Rules = []v1alpha1.Rule{{Metric: storage().Metric, AlarmID: x.made.ID,
			Dimension: x.made.Dimension + ":" + x.made.DimensionValue}}
	}
	return x.mailbox.expect(ctx, a, in)
}

// checkRule creates a rule that is in alarm at any value. It enables the rule only after the receiver knows it, because
// the receiver ignores messages of unknown rules.
func (x *examination) checkRule(ctx context.Context) []Result {
	rule := otc.Rule{
		Name: x.prefix() + x.run, Description: description,
		Namespace: otc.MetricNamespace, Metric: storage().CloudEye, Dimension: x.data.dimension, DimensionValue: x.data.value,
		Period: 1, Count: 1, Filter: "average", Comparison: ">=", Threshold: 0, Unit: storage().Unit, Level: 2,
		ActionEnabled: true, AlarmActions: []string{x.topicURN}, OKActions: []string{x.topicURN},
	}
	id, err := x.api.CreateRule(ctx, rule)
	if err != nil {
		return refused(err)
	}
	rule.ID = id
	x.made = rule
	x.seen.ruleNew, err = x.readRule(ctx)
	errs := []error{err}
	if x.mailbox != nil {
		errs = append(errs, x.expect(ctx))
	}
	errs = append(errs, x.api.EnableRule(ctx, id, true))
	if x.results["subscription"].State != OK {
		errs = append(errs, x.watchRule(ctx)) // no message will arrive, but the rule's state can still be observed
	}
	return unless(refused(errs...), "%s ≥ 0 of %s:%s", rule.Metric, rule.Dimension, rule.DimensionValue)
}

func (x *examination) readRule(ctx context.Context) (*otc.Rule, error) {
	r, err := x.api.Rule(ctx, x.made.ID)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// checkAlarm waits for the rule's message. Doctor's own receiver refuses it once, so checkAlarm waits for it again.
func (x *examination) checkAlarm(ctx context.Context) []Result {
	arrived := func(ctx context.Context) bool {
		x.readMailbox(ctx)
		return x.alarm() != nil || x.seen.notification != nil
	}
	failed := refused(x.watchRule(ctx, arrived))
	if !arrived(ctx) && x.seen.ruleAlarm != nil {
		x.until(ctx, x.Wait/silentPart, "the message of the alarm that Cloud Eye shows", arrived)
	}
	n := x.seen.notification
	if x.alarm() == nil && n == nil {
		return append(failed, x.noAlarm()...)
	}
	results := failed
	if n != nil {
		results = slices.Concat(ok("The message: %s", n.shape()), ok("The alarm in it: %s", shape(n.payload())), failed)
		if n.refused {
			again := x.until(ctx, x.Wait/againPart, "SMN to send the refused alarm again", x.hasSecond)
			x.seen.repeated = &again
		}
	}
	switch stored := x.alarm(); {
	case stored != nil:
		return append(results, ok("A signed alarm arrived %s after Cloud Eye raised it, with a certificate of %s",
			stored.ReceivedTime.Sub(stored.AlarmTime.Time).Truncate(time.Second), x.certHost())...)
	case n.refused && x.seen.second == nil:
		return append(results, ok("A signed alarm arrived, and doctor refused it once on purpose")...)
	}
	return append(results, result(Failed, "See the lines below for the assumption that does not hold, and docs/cloud-facts.md for its effect",
		"The alarm arrived, but the receiver did not accept it: %s",
		cmp.Or(n.problem, "it names another rule, metric or instance"))...)
}

// hasSecond reports whether SMN has sent the first alarm again.
func (x *examination) hasSecond(ctx context.Context) bool {
	x.readMailbox(ctx)
	n := x.seen.notification
	for _, m := range x.seen.messages {
		if m != n && m.text("message") == n.text("message") {
			x.seen.second = m
		}
	}
	return x.seen.second != nil
}

func (x *examination) noAlarm() []Result {
	if x.seen.ruleAlarm == nil {
		return result(Failed, "Check the rule's data in the console of Cloud Eye. Without the rule, the service grows storage by its used space",
			"The rule was not in alarm within %s, although %s is never below 0", x.Wait, storage().CloudEye)
	}
	return result(Failed, "Check the topic's access policy. Without messages, the service acts on alarms at each sweep",
		"Cloud Eye shows the alarm, but no message of it arrived")
}

// watchRule waits for the rule's alarm, reads the rule again later, and rewrites it. It calls also at each poll.
func (x *examination) watchRule(ctx context.Context, also ...func(context.Context) bool) error {
	if x.seen.ruleRewritten != nil || x.seen.waited > 0 {
		return nil
	}
	begin := x.Now()
	x.until(ctx, x.Wait, "the rule to be in alarm", func(ctx context.Context) bool {
		for _, poll := range also {
			poll(ctx)
		}
		r, err := x.readRule(ctx)
		if err != nil || !strings.EqualFold(r.State, string(v1alpha1.StateAlarm)) {
			return false
		}
		x.seen.ruleAlarm = r
		return true
	})
	x.seen.waited = max(x.Now().Sub(begin), 1)
	if x.seen.ruleAlarm == nil {
		return nil
	}
	x.pause(ctx, x.Wait/readPart, "the second read of the rule")
	x.seen.ruleLater, _ = x.readRule(ctx)
	rewritten := x.made
	rewritten.Repeat = 86400 // a day: no repetition during the run
	err := x.api.ModifyRule(ctx, x.made.ID, rewritten)
	if err == nil {
		x.seen.ruleRewritten, _ = x.readRule(ctx)
	}
	return err
}
