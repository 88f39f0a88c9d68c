// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// State is the outcome of a check.
type State string

// The states of a Step.
const (
	StateOK      State = "ok"
	StateFailed  State = "FAILED"
	StateSkipped State = "skipped" // it needs the cluster, or an earlier check failed
	StateNote    State = "note"    // for the reader to judge
)

// Step is the outcome of one check of a captured message.
type Step struct {
	State State
	Check string // its name
	Text  string // one line for people
}

// Inspect runs the receiver's checks, in their order, on the captured body of a message. It needs no cluster and calls
// no link, but Keys may fetch the signing certificate. It uses the options Keys, ConfirmHosts and Now. It returns one
// step per check and skips those after the first failure.
func Inspect(ctx context.Context, o Options, body []byte) []Step {
	r := &Receiver{Options: o}
	r.Warn = func(*v1alpha1.RdsAutopilot, string, string) {}
	m := &message{body: body}
	var steps []Step
	failed := false
	for _, c := range checks() {
		step := Step{StateSkipped, c.name, "not checked"}
		if !failed {
			step.State, step.Text = c.inspect(ctx, r, m)
		}
		failed = failed || step.State == StateFailed
		steps = append(steps, step)
	}
	return steps
}

// WriteSteps writes a line for each step, and the name of the first check that failed. It reports whether all passed.
func WriteSteps(w io.Writer, steps []Step) (ok bool, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	last := "all checks passed"
	ok = true
	for _, s := range steps {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.State, s.Check, s.Text)
		if s.State == StateFailed && ok {
			ok, last = false, "failed: "+s.Check
		}
	}
	if err := table.Flush(); err != nil {
		return ok, err
	}
	_, err = fmt.Fprintln(w, last)
	return ok, err
}

func (c *check) inspect(ctx context.Context, r *Receiver, m *message) (State, string) {
	switch c.offline {
	case needsCluster:
		return StateSkipped, c.text(m, r.Now())
	case needsArrival:
		return StateNote, c.text(m, r.Now())
	}
	res, err := c.apply(ctx, r, m)
	if res == "" {
		return StateOK, c.text(m, r.Now())
	}
	explained := ""
	if c.explain != nil {
		explained = " (" + c.explain(m, r.Now()) + ")"
	}
	return StateFailed, fmt.Sprintf("%v%s; serve answers %d (%s)", err, explained, res.status(), res)
}

// text returns one line for people about a message.
type text func(*message, time.Time) string

func static(s string) text { return func(*message, time.Time) string { return s } }

func textSize(m *message, _ time.Time) string { return fmt.Sprintf("%d bytes", len(m.body)) }

func textType(m *message, _ time.Time) string {
	return string(m.envelope.Type) + ", id " + m.envelope.MessageID
}

func textTopic(m *message, _ time.Time) string {
	return m.envelope.TopicURN + ": ours if it is the status.alarms.topicURN of an RdsAutopilot"
}

func textAge(m *message, now time.Time) string {
	when := "ahead of this machine's clock"
	age := now.Sub(m.envelope.Time).Truncate(time.Second)
	if age >= 0 {
		when = "ago"
	}
	return fmt.Sprintf("signed %s, %s %s; serve refuses a message that is older than --max-message-age on arrival,"+
		" or more than %s ahead", m.envelope.Timestamp, age.Abs(), when, MaxAhead)
}

func textCertURL(m *message, _ time.Time) string { return fmt.Sprintf("%.200q", m.envelope.CertURL) }

func textMessage(m *message, _ time.Time) string {
	switch m.envelope.Type {
	case smn.TypeConfirmation:
		return "serve would call its confirmation link if the topic is ours; it is not called now"
	case smn.TypeUnsubscribed:
		return "the subscription was cancelled; its link is never called"
	}
	a := m.alarm
	var b strings.Builder
	fmt.Fprintf(&b, "rule %s reports %s for %s", a.ID, a.Status, a.Metric)
	for _, d := range a.Dimensions {
		fmt.Fprintf(&b, ", %s %s", d.Name, d.Value)
	}
	b.WriteString(", at " + a.Time.Format(time.RFC3339))
	if !a.ValueTime.IsZero() {
		fmt.Fprintf(&b, "; %v %% at %s", a.Value, a.ValueTime.Format(time.RFC3339))
	}
	return b.String()
}
