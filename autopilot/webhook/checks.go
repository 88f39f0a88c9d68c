// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	body     []byte
	envelope smn.Envelope
	key      *rsa.PublicKey
	alarm    smn.Alarm              // of a notification
	target   *v1alpha1.RdsAutopilot // that has recorded the alarm's rule; nil before checkRule
	metric   v1alpha1.Metric        // of the rule that the alarm names
	link     string                 // of a confirmation, built from checked parts
}

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

// checkTopic compares the topic with that of the installation. A replica that does not know it yet must not lose a
// message of a topic with our name, so SMN has to repeat it.
func (r *Receiver) checkTopic(_ context.Context, m *message) (result, error) {
	switch urn, own := m.envelope.TopicURN, r.Store.Topic().URN; {
	case urn == own:
		return "", nil
	case own == "" && strings.HasSuffix(urn, ":"+r.TopicName):
		return resultIncomplete, errors.New("the topic of the installation is not known yet")
	}
	return "", errors.New("the topic is not ours")
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

// checkCertificate fetches the signing certificate. Once one is known, only a message with its URL proves an outage: a
// stranger can name any other URL, also one at which the host answers 500.
func (r *Receiver) checkCertificate(ctx context.Context, m *message) (res result, err error) {
	that, some := r.Store.SignedBefore(m.envelope.CertURL)
	m.key, err = r.Keys.Key(ctx, m.envelope.CertURL, that)
	if errors.Is(err, smn.ErrUnknownURL) || err != nil && some && !that {
		return resultIncomplete, err
	}
	return "", err
}

func (r *Receiver) checkSignature(_ context.Context, m *message) (result, error) {
	return "", m.envelope.Verify(m.key)
}

func (r *Receiver) checkMessage(_ context.Context, m *message) (res result, err error) {
	switch m.envelope.Type {
	case smn.TypeUnsubscribed: // its link is never called
		return "", nil
	case smn.TypeConfirmation:
		if m.link, err = confirmLink(m.envelope.SubscribeURL, r.ConfirmHosts, m.envelope.TopicURN); err != nil {
			r.Warn(reasonConfirm, fmt.Sprintf("Cannot confirm the subscription of the alarm topic: %v", err))
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
		r.Warn(reasonUnreadable, fmt.Sprintf("Cannot read a message of the alarm topic: %v", err))
		return "", err
	}
	if m.alarm.ValueTime.After(soon) {
		m.alarm.Value, m.alarm.ValueTime = 0, time.Time{} // the alarm is valid without it
	}
	return "", nil
}

var errUnknownRule = errors.New("the alarm rule is not ours")

// checkRule finds the RdsAutopilot that has recorded the rule of an authentic alarm. A rule may be newer than the cache.
// Then its name says which object to read from the API server.
func (r *Receiver) checkRule(ctx context.Context, m *message) (res result, err error) {
	if m.envelope.Type != smn.TypeNotification {
		return "", nil
	}
	found := r.Store.ByRule(m.alarm.ID)
	if len(found) == 0 {
		namespace, name, ok := r.RuleOwner(m.alarm.Name)
		if !ok {
			return "", errUnknownRule
		}
		live, err := r.Store.LiveAutopilot(ctx, namespace, name)
		switch {
		case errors.Is(err, autopilot.ErrGone):
			return "", fmt.Errorf("%w: %w", errUnknownRule, err)
		case err != nil:
			return resultUnavailable, fmt.Errorf("look up the rule: %w", err)
		}
		found = []*v1alpha1.RdsAutopilot{live}
	}
	for _, m.target = range found {
		if m.metric, err = ruleMetric(m.target, m.alarm); err == nil {
			break
		}
	}
	return "", err
}

func ruleMetric(target *v1alpha1.RdsAutopilot, a smn.Alarm) (v1alpha1.Metric, error) {
	rules := target.Status.Alarms.Rules
	i := slices.IndexFunc(rules, func(rule v1alpha1.Rule) bool { return rule.AlarmID == a.ID })
	if i < 0 {
		return "", errUnknownRule
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
