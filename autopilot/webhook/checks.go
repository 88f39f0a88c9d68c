// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Reasons of the Warning events about messages.
const (
	reasonUnreadable = "AlarmUnreadable"
	reasonConfirm    = "ConfirmationRefused"
)

// message holds a body and the results of the checks so far. Each check relies on the fields that earlier ones have
// set.
type message struct {
	body         []byte
	envelope     smn.Envelope
	target       *v1alpha1.RdsAutopilot // the autopilot of the topic
	signedBefore bool                   // its certificate has signed a stored message
	key          *rsa.PublicKey
	alarm        smn.Alarm       // of a notification
	metric       v1alpha1.Metric // of the rule that the alarm names
	link         string          // of a confirmation, built from checked parts
}

// check is one step of the receiver. A message that fails a check does not reach the next one.
type check struct {
	name string // as the log line of a refused message has it
	// run returns neither result nor error if the message passes. An error without a result stands for the row's result.
	run    func(*Receiver, context.Context, *message) (result, error)
	result result
}

// checks returns the checks in their order. The cheapest and strictest come first, so nothing is fetched for a message
// of another topic.
func checks() []check {
	return []check{
		{"envelope", (*Receiver).checkEnvelope, resultMalformed},
		{"type", (*Receiver).checkType, resultIgnored},
		{"topic", (*Receiver).checkTopic, resultForeign},
		{"age", (*Receiver).checkAge, resultExpired},
		{"certificate URL", (*Receiver).checkCertURL, resultForged},
		{"certificate", (*Receiver).checkCertificate, resultUnavailable},
		{"signature", (*Receiver).checkSignature, resultForged},
		{"repetition", (*Receiver).checkRepetition, resultDuplicate},
		{"message", (*Receiver).checkMessage, resultUnreadable},
		{"rule", (*Receiver).checkRule, resultIgnored},
	}
}

// runChecks runs the checks in their order. It returns the result, check and error of the first one that the message
// fails, or an empty outcome.
func (r *Receiver) runChecks(ctx context.Context, m *message) outcome {
	for _, c := range r.checks {
		res, err := c.run(r, ctx, m)
		if res == "" && err != nil {
			res = c.result
		}
		if res != "" {
			return outcome{result: res, check: c.name, err: err}
		}
	}
	return outcome{}
}

func (r *Receiver) checkEnvelope(_ context.Context, m *message) (res result, err error) {
	m.envelope, err = smn.ParseEnvelope(m.body)
	return "", err
}

func (r *Receiver) checkType(_ context.Context, m *message) (result, error) {
	if !m.envelope.Type.Known() {
		return "", fmt.Errorf("the type %s is unknown, so the rest is not read", m.envelope.Type)
	}
	return "", nil
}

// checkTopic finds the autopilot of the topic. A confirmation can arrive before the watch event that has its topic, so
// checkTopic looks up a URN that could be ours at the API server.
func (r *Receiver) checkTopic(ctx context.Context, m *message) (result, error) {
	urn := m.envelope.TopicURN
	found := r.Store.ByTopic(urn)
	if len(found) == 0 && r.OurTopics(urn) {
		if !r.Store.Expects(urn) { // strangers can invent such URNs, so their number is limited
			if err := wait(ctx, r.topicLookups); err != nil {
				return resultLimited, fmt.Errorf("look up the topic: %w", err)
			}
		}
		var err error
		if found, err = r.Store.ByTopicLive(ctx, urn); err != nil {
			res := resultUnavailable
			// The API server refuses a namespace whose Role is gone. That is no outage, and strangers can name it.
			if _, refused := errors.AsType[*autopilot.RefusedError](err); refused || errors.Is(err, autopilot.ErrLimited) {
				res = resultLimited
			}
			return res, fmt.Errorf("look up the topic: %w", err)
		}
	}
	if len(found) == 0 {
		return "", errors.New("the topic is not ours")
	}
	m.target, m.signedBefore = found[0], r.Store.SignedBefore(m.envelope.CertURL)
	return "", nil
}

func (r *Receiver) checkAge(_ context.Context, m *message) (result, error) {
	if age := r.Now().Sub(m.envelope.Time); age > r.MaxMessageAge || age < -MaxAhead {
		return "", fmt.Errorf("signed at %s", m.envelope.Timestamp)
	}
	return "", nil
}

func (r *Receiver) checkCertURL(_ context.Context, m *message) (result, error) {
	return "", r.Keys.CheckURL(m.envelope.CertURL)
}

func (r *Receiver) checkCertificate(ctx context.Context, m *message) (res result, err error) {
	m.key, err = r.Keys.Key(ctx, m.envelope.CertURL, m.envelope.TopicURN, m.signedBefore)
	if errors.Is(err, smn.ErrLimited) {
		return resultLimited, err
	}
	return "", err
}

func (r *Receiver) checkSignature(_ context.Context, m *message) (result, error) {
	return "", m.envelope.Verify(m.key)
}

// checkRepetition skips a confirmation that is stored or older than the stored one, so that its link is called once.
// Alarms are compared when they are stored.
func (r *Receiver) checkRepetition(_ context.Context, m *message) (result, error) {
	if m.envelope.Type != smn.TypeConfirmation {
		return "", nil
	}
	return repeated(m.target.Status.Intake, m.envelope), nil
}

// checkMessage reads the signed content: the alarm of a notification, or the link of a confirmation.
func (r *Receiver) checkMessage(_ context.Context, m *message) (res result, err error) {
	switch m.envelope.Type {
	case smn.TypeUnsubscribed: // its link is never called
		return "", nil
	case smn.TypeConfirmation:
		if m.link, err = confirmLink(m.envelope.SubscribeURL, r.ConfirmHosts, m.envelope.TopicURN); err != nil {
			r.Warn(m.target, reasonConfirm, fmt.Sprintf("Cannot confirm the subscription of the alarm topic: %v", err))
			return resultIgnored, err
		}
		return "", nil
	}
	soon := r.Now().Add(MaxAhead)
	if m.alarm, err = smn.ParseAlarm(m.envelope.Message); err == nil && m.alarm.Time.After(soon) {
		// If it were stored, every later alarm would look old.
		err = fmt.Errorf("%w: its time is in the future", smn.ErrUnreadable)
	}
	if err != nil {
		return "", err
	}
	if m.alarm.ValueTime.After(soon) {
		m.alarm.Value, m.alarm.ValueTime = 0, time.Time{} // the alarm is valid without it
	}
	return "", nil
}

// checkRule checks that an authentic alarm is about this database, because others may publish to the topic as well. A
// rule may be newer than the cache, so checkRule reads the object from the API server before it reports a rule as
// unknown.
func (r *Receiver) checkRule(ctx context.Context, m *message) (result, error) {
	if m.envelope.Type != smn.TypeNotification {
		return "", nil
	}
	var unknown error
	if m.metric, unknown = ruleMetric(m.target, m.alarm); unknown == nil {
		return "", nil
	}
	if err := wait(ctx, r.ruleLookups); err != nil {
		return resultLimited, fmt.Errorf("look up the rule: %w", err)
	}
	live, err := r.Store.LiveAutopilot(ctx, m.target.Namespace, m.target.Name)
	switch {
	case errors.Is(err, autopilot.ErrGone):
		return "", unknown
	case err != nil:
		return resultUnavailable, fmt.Errorf("look up the rule: %w", err)
	}
	m.target = live
	m.metric, err = ruleMetric(live, m.alarm)
	return "", err
}

// ruleMetric returns the metric of the alarm's rule. It returns an error if the rule, metric, state or instance is not
// the autopilot's.
func ruleMetric(target *v1alpha1.RdsAutopilot, a smn.Alarm) (v1alpha1.Metric, error) {
	rules := target.Status.Alarms.Rules
	i := slices.IndexFunc(rules, func(rule v1alpha1.Rule) bool { return rule.AlarmID == a.ID })
	if i < 0 {
		return "", errors.New("the alarm rule is not ours")
	}
	metric, err := autopilot.LookupMetric(rules[i].Metric)
	switch {
	case err != nil:
		return "", err
	case a.Namespace != "SYS.RDS" || a.Metric != metric.CloudEye:
		return "", errors.New("the metric is not the rule's")
	case a.Status != string(v1alpha1.StateAlarm) && a.Status != string(v1alpha1.StateOK):
		return "", errors.New("the state is neither alarm nor ok")
	}
	inst := target.Status.Instance
	for _, d := range a.Dimensions {
		if inst != nil && (d.Value == inst.ID || slices.Contains(inst.NodeIDs, d.Value)) {
			return rules[i].Metric, nil
		}
	}
	return "", errors.New("the instance is not ours")
}
