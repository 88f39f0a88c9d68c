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

// Parts of Options.Wait, which is for a message of Cloud Eye.
const (
	settlePart  = 240 // for what was written to be known everywhere
	confirmPart = 10  // for a confirmation that was asked for again
	listedPart  = 20  // for the list of subscriptions to show it
	lookPart    = 10  // between two looks at a rule whose state does not change
	silentPart  = 4   // for the message of an alarm that Cloud Eye shows
	againPart   = 2   // for a message to be sent again
)

func (x *examination) checkTopic(ctx context.Context) []Result {
	name := x.prefix() + randomName()
	urn, err := x.api.CreateTopic(ctx, name, goesByItself)
	if err != nil {
		return refused(err)
	}
	x.topicURN = urn
	_, x.seen.topicAgain = x.api.CreateTopic(ctx, name, goesByItself)
	_, err = x.api.Topic(ctx, urn)
	return unless(refused(err, x.api.UpdateTopic(ctx, urn, goesByItself+".")), "%s", urn)
}

// goesByItself is how what doctor makes is described to people who find it.
const goesByItself = "rds-autopilot doctor: goes by itself"

// checkSubscription has the confirmation sent twice: the first time nobody expects it, so that it is seen whether it is sent again.
func (x *examination) checkSubscription(ctx context.Context) []Result {
	if x.Listen == nil && x.kube == nil {
		return result(Unseen, "Give --listen, to receive the messages here", "Without Kubernetes the running service cannot be asked")
	}
	if x.mailbox == nil {
		var err error
		if x.mailbox, err = openMailbox(ctx, x.kube, x.Namespace, randomName()); err != nil {
			return result(Failed, "Apply deploy/rbac.yaml, or run it in the service's pod", "%v", err)
		}
	}
	if failed := x.subscribe(ctx); failed != nil {
		return failed
	}
	const settling = "what was written to be known everywhere"
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
	c := x.seen.confirmation
	switch {
	case ctx.Err() != nil:
		return result(Failed, "", "It was ended before the confirmation came")
	case c == nil:
		return x.nothingCame()
	case c.Result != "confirmed":
		return result(Failed, "The lines below say which assumption does not hold, and docs/cloud-facts.md what to do then", "The confirmation came, and is not accepted (%s): %s", c.Result, c.Error)
	}
	x.until(ctx, x.Wait/listedPart, "the subscription to be listed as confirmed", func(ctx context.Context) bool { return x.listed(ctx) == otc.SubscriptionConfirmed })
	if x.seen.subscription == nil || x.seen.subscription.Status != otc.SubscriptionConfirmed {
		return result(Failed, "Look at the subscription in the console", "The link was called with success, and the subscription is not listed as confirmed")
	}
	return ok("Confirmed: a signed message came after %s, with a certificate of %s", since(c), c.certHost())
}

// since is how long a message was under way, by its own time.
func since(m *message) string {
	sent, err := time.Parse(time.RFC3339, m.text("timestamp"))
	if err != nil {
		return "an unknown time"
	}
	return m.ReceivedTime.Sub(sent).Truncate(time.Second).String()
}

func (x *examination) nothingCame() []Result {
	for _, m := range x.seen.messages {
		if m.Result == malformedResult {
			return result(Failed, "The lines below say which assumption does not hold", "A message came that is not in SMN's form: %s", m.Error)
		}
	}
	do := "Check DNS, firewall and Ingress of the public URL, and that the service runs with this very --public-url and watches this namespace; its log has a line for each message"
	if x.Listen != nil {
		do = "Check DNS, firewall and Ingress of the public URL, and that it leads to the address of --listen"
	}
	return result(Failed, do, "No confirmation came within %s", x.Wait/confirmPart+x.Wait/2)
}

// subscribe returns what to say if it fails.
func (x *examination) subscribe(ctx context.Context) []Result {
	_, err := x.api.Subscribe(ctx, x.topicURN, x.PublicURL.Scheme, x.PublicURL.String(), goesByItself)
	return refused(err)
}

// subscribeAnew makes another subscription in place of the one whose confirmation did not come.
func (x *examination) subscribeAnew(ctx context.Context) []Result {
	if x.seen.confirmation != nil { // it came, and was refused: another would be, too
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

// confirmed waits for a confirmation that will not come otherwise any more.
func (x *examination) confirmed(ctx context.Context, most time.Duration) bool {
	return x.until(ctx, most, "the confirmation", func(ctx context.Context) bool {
		x.readMailbox(ctx)
		c := x.seen.confirmation
		return c != nil && (c.Result != "unavailable" || c.lacksCertificate())
	}) && x.seen.confirmation != nil
}

// readMailbox takes in what has come. An error is as if nothing had, and is told with the progress.
func (x *examination) readMailbox(ctx context.Context) {
	var captured []v1alpha1.CapturedMessage
	if captured, x.mailboxErr = x.mailbox.captured(ctx); x.mailboxErr == nil {
		x.keepMessages(captured)
	}
}

// listed is the status of our subscription in the list; -1 where it is not there.
func (x *examination) listed(ctx context.Context) int {
	all, err := x.api.TopicSubscriptions(ctx, x.topicURN)
	if err != nil || len(all) == 0 {
		return -1
	}
	x.seen.subscription = &all[0]
	return all[0].Status
}

// expect tells the receiver of all that there is by now.
func (x *examination) expect(ctx context.Context) error {
	s := v1alpha1.Status{Alarms: v1alpha1.Alarms{TopicURN: x.topicURN}}
	if x.instance != nil {
		s.Instance = &v1alpha1.Instance{ID: x.instance.ID}
		for _, n := range x.instance.Nodes {
			s.Instance.NodeIDs = append(s.Instance.NodeIDs, n.ID)
		}
	}
	if x.made.ID != "" {
		s.Alarms.Rules = []v1alpha1.Rule{{Metric: storage().Metric, AlarmID: x.made.ID, Dimension: x.made.Dimension + ":" + x.made.DimensionValue}}
	}
	return x.mailbox.expect(ctx, s)
}

// checkRule makes a rule that is in alarm whatever the database does, and changes nothing of the database. It is off until the
// receiver knows it: a message of an unknown rule would be ignored.
func (x *examination) checkRule(ctx context.Context) []Result {
	rule := otc.Rule{
		Name: x.prefix() + randomName(), Description: goesByItself,
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
	if x.seen.confirmation == nil || x.seen.confirmation.Result != "confirmed" {
		errs = append(errs, x.watchRule(ctx)) // no message will come; what the rule does can be seen all the same
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

// checkAlarm waits for the message of the rule, refuses it once, and waits for it again.
func (x *examination) checkAlarm(ctx context.Context) []Result {
	arrived := func(ctx context.Context) bool {
		x.readMailbox(ctx)
		return x.seen.notification != nil
	}
	failed := refused(x.watchRule(ctx, arrived))
	if x.seen.notification == nil && x.seen.ruleAlarm != nil {
		x.until(ctx, x.Wait/silentPart, "the message of the alarm, which Cloud Eye shows", arrived)
	}
	n := x.seen.notification
	if n == nil {
		return append(failed, x.noAlarm()...)
	}
	again := x.until(ctx, x.Wait/againPart, "the alarm to be sent again, after it was refused once", func(ctx context.Context) bool {
		x.readMailbox(ctx)
		i := slices.IndexFunc(x.seen.messages, func(m *message) bool { return m != n && m.text("message") == n.text("message") })
		if i >= 0 {
			x.seen.second = x.seen.messages[i]
		}
		return i >= 0
	})
	final := cmp.Or(x.seen.second, n)
	if n.Result == "unavailable" {
		x.seen.repeated = &again
	}
	said := slices.Concat(ok("The message: %s", n.shape()), ok("The alarm in it: %s", shape(n.payload())), failed)
	if final.Result == "stored" || !again && n.Result == "unavailable" {
		return append(said, ok("A signed alarm came after %s, with a certificate of %s", since(n), n.certHost())...)
	}
	return append(said, result(Failed, "The lines below say which assumption does not hold, and docs/cloud-facts.md what the service does then",
		"The alarm came, and is not accepted (%s): %s", final.Result, final.Error)...)
}

func (x *examination) noAlarm() []Result {
	if x.seen.ruleAlarm == nil {
		return result(Failed, "Look at the rule's data in the console of Cloud Eye; the service acts on storage without the rule, by its used space", "The rule was not in alarm within %s, although %s is never below 0", x.Wait, storage().CloudEye)
	}
	return result(Failed, "Look at the topic's access policy; the service acts on alarms without messages, at each sweep", "Cloud Eye shows the alarm, and no message of it came")
}

// watchRule waits for the rule's alarm, looks whether its time stays, and rewrites it.
func (x *examination) watchRule(ctx context.Context, also ...func(context.Context) bool) error {
	if x.seen.ruleRewritten != nil || x.seen.waited > 0 {
		return nil
	}
	begin := x.Now()
	x.until(ctx, x.Wait, "the rule to be in alarm", func(ctx context.Context) bool {
		for _, look := range also {
			look(ctx)
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
	x.pause(ctx, x.Wait/lookPart, "another look at the rule")
	x.seen.ruleLater, _ = x.readRule(ctx)
	rewritten := x.made
	rewritten.Repeat = 86400 // not while anybody waits
	err := x.api.ModifyRule(ctx, x.made.ID, rewritten)
	if err == nil {
		x.seen.ruleRewritten, _ = x.readRule(ctx)
	}
	return err
}
