// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcsps/rds-autopilot/internal/shorten"
)

// attack is a case: what it sends, the last answer that it must get, and the number of writes to the store. Its number
// is that in testdata/attacks.md.
type attack struct {
	no     int
	name   string
	run    func(*harness)
	status int
	result result // empty if the answer comes before the message is counted
	writes int
}

func TestAttackTable(t *testing.T) {
	var rows []attack
	for _, part := range [][]attack{
		envelopeAttacks(), signatureAttacks(), certificateAttacks(), foreignAttacks(), replayAttacks(), faultAttacks(),
	} {
		rows = append(rows, part...)
	}
	for _, a := range rows {
		name := fmt.Sprintf("%d %s", a.no, a.name)
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			a.run(s)
			s.server.Close() // the work that follows an answer has ended then
			var got answered
			if len(s.answers) > 0 {
				got = s.answers[len(s.answers)-1]
			}
			if got.status != a.status || a.result != "" && got.text != string(a.result) {
				t.Errorf("answered %d %s, want %d %s; logs %v", got.status, got.text, a.status, a.result, s.logs.All())
			}
			if s.store.writes != a.writes {
				t.Errorf("%d writes, want %d", s.store.writes, a.writes)
			}
			s.checkRequests(a)
			s.checkCounted(a)
			s.checkSecrets()
		})
	}
}

// checkRequests fails if a message caused requests or warnings that it must not cause, because anyone can post.
func (s *harness) checkRequests(a attack) {
	s.Helper()
	unsigned := []result{resultForged, resultForeign, resultMalformed, resultTooLarge, resultExpired}
	if a.writes == 0 && slices.Contains(unsigned, a.result) && s.store.calls > 0 {
		s.Errorf("%d calls of the API server", s.store.calls)
	}
	if n := s.cert.requests.Load(); a.writes == 0 && slices.Contains(unsigned[1:], a.result) && n > 0 {
		s.Errorf("%d requests for a certificate", n)
	}
	called := []result{resultConfirmed, resultUnconfirmed, resultUnavailable}
	if warned := strings.Contains(strings.Join(s.warnings, " "), reasonUnreadable); warned != (a.result == resultUnreadable) {
		s.Errorf("the warnings are %q", s.warnings)
	}
	if n := s.console.requests.Load(); !slices.Contains(called, a.result) && n > 0 {
		s.Errorf("%d links were called", n)
	}
}

// checkCounted compares the metric with the number of answers.
func (s *harness) checkCounted(a attack) {
	s.Helper()
	if a.result == "" {
		return
	}
	s.mu.Lock()
	want := 0
	for _, got := range s.answers {
		if got.text == string(a.result) {
			want++
		}
	}
	s.mu.Unlock()
	sum := 0.0
	for _, typ := range []string{"Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation", typeOther} {
		sum += testutil.ToFloat64(s.receiver.meters.notifications.WithLabelValues(typ, string(a.result)))
	}
	if int(sum) != want || want == 0 {
		s.Errorf("%v messages were counted as %s, and %d were answered so", sum, a.result, want)
	}
}

// checkSecrets fails if a log line, an event, a metric or an answer contains a secret or control characters.
func (s *harness) checkSecrets() {
	s.Helper()
	var out strings.Builder
	for _, l := range s.logs.All() {
		line := l.Message
		for _, f := range l.Context {
			line += fmt.Sprint(" ", f.Key, "=", f.String, f.Interface)
			if f.Key == "error" && len(f.String) > shorten.Limit {
				s.Errorf("a log line of %d bytes", len(f.String))
			}
		}
		if strings.ContainsAny(line, "\x1b\x00\r") {
			s.Errorf("control characters in a log line: %q", line)
		}
		out.WriteString(line + "\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.answers {
		out.WriteString(a.text + "\n")
	}
	out.WriteString(strings.Join(s.warnings, "\n"))
	families, err := s.reg.Gather()
	if err != nil {
		s.Error(err)
	}
	for _, f := range families {
		out.WriteString(f.String() + "\n")
	}
	for _, secret := range append(s.secrets, token, "pa55word", "BEGIN RSA PRIVATE KEY", "subscription/confirm?") {
		if strings.Contains(out.String(), secret) {
			s.Errorf("the output contains %q:\n%s", secret, out.String())
		}
	}
}
