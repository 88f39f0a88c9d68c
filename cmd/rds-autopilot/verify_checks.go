package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
)

// verifier looks at a captured body with the receiver's own functions.
type verifier struct {
	certHosts    []string
	confirmHosts []string
	keys         *smn.Keys
	now          func() time.Time

	body     []byte
	envelope smn.Envelope
	verified error // what Keys said of certificate and signature
}

// look goes through the receiver's checks in its order; what comes after the first that fails is not looked at.
func (v *verifier) look(ctx context.Context, body []byte) []verdict {
	v.body = body
	checks := []struct {
		name string
		do   func(context.Context) (state, text string)
	}{
		{"size", v.size},
		{"envelope", v.parse},
		{"type", v.kind},
		{"topic", v.topic},
		{"age", v.age},
		{"certificate URL", v.certURL},
		{"certificate", v.certificate},
		{"signature", v.signature},
		{"message", v.message},
	}
	var verdicts []verdict
	failed := false
	for _, c := range checks {
		d := verdict{stateSkipped, c.name, "not looked at"}
		if !failed {
			d.State, d.Text = c.do(ctx)
		}
		failed = failed || d.State == stateFailed
		verdicts = append(verdicts, d)
	}
	return verdicts
}

func (v *verifier) size(context.Context) (state, text string) {
	if len(v.body) > webhook.MaxBody {
		return stateFailed, fmt.Sprintf("more than %d bytes", webhook.MaxBody)
	}
	return stateOK, fmt.Sprintf("%d bytes", len(v.body))
}

func (v *verifier) parse(context.Context) (state, text string) {
	e, err := smn.ParseEnvelope(v.body)
	if err != nil {
		return stateFailed, err.Error()
	}
	v.envelope = e
	return stateOK, "one JSON object, each key once, each field in its form"
}

func (v *verifier) kind(context.Context) (state, text string) {
	if !v.envelope.Type.Known() {
		return stateFailed, fmt.Sprintf("%s is not known; serve answers 200 and reads no more of it", v.envelope.Type)
	}
	return stateOK, string(v.envelope.Type) + ", id " + v.envelope.MessageID
}

func (v *verifier) topic(context.Context) (state, text string) {
	return stateSkipped, v.envelope.TopicURN + ": ours if it is the status.alarms.topicURN of an RdsAutopilot"
}

func (v *verifier) age(context.Context) (state, text string) {
	when := "ahead of this machine's clock"
	age := v.now().Sub(v.envelope.Time).Truncate(time.Second)
	if age >= 0 {
		when = "ago"
	}
	return stateNote, fmt.Sprintf("signed %s, %s %s; serve refuses what is older than --max-message-age when it comes, or more than %s ahead",
		v.envelope.Timestamp, age.Abs(), when, webhook.MaxAhead)
}

func (v *verifier) certURL(context.Context) (state, text string) {
	if err := smn.CertURL(v.envelope.CertURL, v.certHosts); err != nil {
		return stateFailed, fmt.Sprintf("%v (--smn-cert-hosts %v): %.200q", err, v.certHosts, v.envelope.CertURL)
	}
	return stateOK, v.envelope.CertURL
}

// certificate asks for both, certificate and signature, as the receiver does.
func (v *verifier) certificate(ctx context.Context) (state, text string) {
	v.verified = v.keys.Verify(ctx, v.envelope, true)
	if errors.Is(v.verified, smn.ErrUnavailable) {
		return stateFailed, v.verified.Error() + "; this says nothing about the message"
	}
	return stateOK, "one, with an RSA key that is strong enough, within its dates"
}

func (v *verifier) signature(context.Context) (state, text string) {
	if v.verified != nil {
		return stateFailed, v.verified.Error() + ": another key signed, or what is signed was altered since"
	}
	return stateOK, "authentic"
}

func (v *verifier) message(context.Context) (state, text string) {
	e := v.envelope
	switch e.Type {
	case smn.TypeConfirmation:
		if _, err := webhook.ConfirmLink(e.SubscribeURL, v.confirmHosts, e.TopicURN); err != nil {
			return stateFailed, fmt.Sprintf("serve would not call the confirmation link: %v", err)
		}
		return stateOK, "serve would call its confirmation link, if the topic is ours; it was not called now"
	case smn.TypeUnsubscribed:
		return stateOK, "the subscription was cancelled; its link is never called"
	}
	a, err := smn.ParseAlarm(e.Message)
	if err != nil {
		return stateFailed, err.Error()
	}
	text = fmt.Sprintf("rule %s says %s of %s", a.ID, a.Status, a.Metric)
	for _, d := range a.Dimensions {
		text += fmt.Sprintf(", %s %s", d.Name, d.Value)
	}
	text += ", at " + a.Time.Format(time.RFC3339)
	if !a.ValueTime.IsZero() {
		text += fmt.Sprintf("; %v %% at %s", a.Value, a.ValueTime.Format(time.RFC3339))
	}
	return stateOK, text
}
