// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcsps/rds-autopilot/internal/shorten"
)

var update = flag.Bool("update", false, "write the table of attacks anew")

// attack is a case: what it sends, the last answer that it must get, and the number of writes to the store.
type attack struct {
	no     int
	name   string
	run    func(*harness)
	status int
	result result // empty if the answer comes before the message is counted
	writes int
}

// elsewhere returns the tests of the cases that are tested at another place, and of further inputs of a case.
func elsewhere() map[int]string {
	return map[int]string{
		1:  "TestParseEnvelopeChecksFields in autopilot/smn",
		2:  "TestParseEnvelopeChecksFields in autopilot/smn: keys that equal a known one by case folding only",
		3:  "TestParseObjectIsStrictAboutKnownFieldsOnly in autopilot/smn",
		5:  "TestParseObjectIsStrictAboutKnownFieldsOnly in autopilot/smn",
		6:  "TestParseEnvelopeChecksFields and TestParseObjectIsStrictAboutKnownFieldsOnly in autopilot/smn",
		7:  "TestParseObjectIsStrictAboutKnownFieldsOnly and TestParseAlarmRefuses in autopilot/smn",
		8:  "TestSignalHasTheFieldsOfTheAlarmAndNoInvalidValue, here, and FuzzAlarm in autopilot/smn",
		12: "TestConcurrentMessagesDoNotShareFields, here",
		17: "TestParseEnvelopeChecksFields in autopilot/smn",
		22: "FuzzCertURL in autopilot/smn",
		24: "FuzzCertURL in autopilot/smn",
		26: "FuzzCertificate in autopilot/smn",
		28: "TestDialRefusesAddressesThatAreNotPublic in autopilot/smn: the address is checked when it is dialled, after the name is resolved",
		29: "TestClientTakesTheProxy in autopilot/smn: a proxy that the administrator sets is used, for configured hosts only",
		30: "TestHonestMessagesAreVerifiedDuringAFloodOfInventedURLs in autopilot/smn",
		37: "TestParseAlarmRefuses in autopilot/smn",
		38: "TestDecide in autopilot/decide and TestAlarmsFollowTheSwitchAndReadyShowsThem in autopilot/controller: the signal is stored, the guards decide",
		42: "TestKilledReplicasLoseNoAlarmAndRepeatNoChange in test/e2e",
		43: "TestSwarm in test/bubble, and TestKilledReplicasLoseNoAlarmAndRepeatNoChange in test/e2e",
		44: "TestSwarm in test/bubble, and TestKilledReplicasLoseNoAlarmAndRepeatNoChange in test/e2e",
		50: "TestNoHistoryBreaksThePromises in autopilot/decide",
		51: "TestAlarmsAreStoredWhileTheReceiverIsFlooded in test/e2e: slow connections end after readTime, and their number is limited",
		52: "TestUnavailableIsNeverCausedByTheSender, here: work that hangs is answered within 4 seconds",
		55: "TestInFlightMessagesAreAnsweredBeforeExit and, with a second SIGTERM, TestDrainingReplicaAnswersAndReleasesTheLease in test/e2e",
		58: "every row of this table: no log line, event, metric or answer holds a token, signature, password or link",
	}
}

func TestAttackTable(t *testing.T) {
	var rows []attack
	for _, part := range [][]attack{
		envelopeAttacks(), signatureAttacks(), certificateAttacks(), foreignAttacks(), replayAttacks(), faultAttacks(),
	} {
		rows = append(rows, part...)
	}
	lines := make(map[int][]string)
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
			// Anyone can post, so a message without a valid signature causes no request to the API server.
			if unsigned := []result{resultForged, resultForeign, resultMalformed}; a.writes == 0 && slices.Contains(unsigned, a.result) && s.store.calls > 0 {
				t.Errorf("%d calls of the API server", s.store.calls)
			}
			s.checkCounted(a)
			s.checkSecrets()
			lines[a.no] = append(lines[a.no], fmt.Sprintf("| %d | %s | %d | %s | %d | %s |",
				a.no, a.name, got.status, cmp.Or(a.result, "–"), s.store.writes, s.outbound()))
		})
	}
	if t.Failed() {
		return
	}
	compareTable(t, lines)
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

// compareTable compares the table of all attacks with the committed one, which -update writes.
func compareTable(t *testing.T, lines map[int][]string) {
	t.Helper()
	var doc strings.Builder
	doc.WriteString("| number | case | status | result | stored | outbound |\n|---|---|---|---|---|---|\n")
	for no := 1; no <= 60; no++ {
		for _, l := range lines[no] {
			doc.WriteString(l + "\n")
		}
		switch where, ok := elsewhere()[no]; {
		case ok:
			fmt.Fprintf(&doc, "| %d | %s | | | | |\n", no, where)
		case len(lines[no]) == 0:
			fmt.Fprintf(&doc, "| %d | **not tested** | | | | |\n", no)
		}
	}
	const file = "testdata/attacks.md"
	if *update {
		if err := os.WriteFile(file, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), doc.String()); diff != "" {
		t.Errorf("%s differs; check the difference, then run the test with -update: %s", file, diff)
	}
}
