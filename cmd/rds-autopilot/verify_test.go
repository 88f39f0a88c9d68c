// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const capturedTopic = "urn:smn:eu-de:0123456789abcdef0123456789abcdef:autopilot_ns_db_12345678"

// sender is a simulated cloud that signs messages and records requests.
type sender struct {
	*simcloud.Cloud
	ca string // file

	mu   sync.Mutex
	sent []string
}

func newSender(t *testing.T) *sender {
	t.Helper()
	s := &sender{ca: filepath.Join(t.TempDir(), "ca.pem")}
	cloud, err := simcloud.Start(simcloud.Options{Fault: func(r *http.Request) *simcloud.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, r.Method+" "+r.URL.Path)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Cloud = cloud
	if err := os.WriteFile(s.ca, cloud.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// requests returns the requests since the last call.
func (s *sender) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

// alarm returns a signed alarm; alter changes it before it is signed.
func (s *sender) alarm(alter func(*simcloud.Envelope)) simcloud.Envelope {
	e := simcloud.Envelope{
		TopicURN: capturedTopic, Subject: "s", UnsubscribeURL: "https://" + s.ConfirmHost() + "/smn/subscription/unsubscribe?token=secret-token",
		Message: `{"message_type":"alarm","alarm_id":"al1700000000000AbCdEfGhI","alarm_status":"alarm","time":1720605661184,"namespace":"SYS.RDS",` +
			`"metric_name":"rds039_disk_util","dimension":"rds_cluster_id:00112233445566778899aabbccddeeffin01","alarmValue":[{"time":1720605600000,"value":91.37}]}`,
	}
	if alter != nil {
		alter(&e)
	}
	return s.Sign(e)
}

// The tests of the receiver have a row for each check.
func TestVerifyStopsAtTheFirstFailedCheckAndShowsNoToken(t *testing.T) {
	s := newSender(t)
	good := s.alarm(nil).JSON()
	for _, tc := range []struct {
		name   string
		body   []byte
		failed string // the check; empty if all pass
		want   string // part of the output
	}{
		{"an old alarm", s.alarm(func(e *simcloud.Envelope) { e.Timestamp = "2020-01-01T00:00:00Z" }).JSON(), "", "signed 2020-01-01T00:00:00Z"},
		{"an alarm", good, "", "91.37 % at 2024-07-10T10:00:00Z"},
		{"a confirmation", s.Sign(simcloud.Envelope{
			Type: simcloud.TypeConfirmation, TopicURN: capturedTopic, Message: "please confirm",
			SubscribeURL: "https://" + s.ConfirmHost() + "/smn/subscription/confirm?token=secret-token&topic_urn=" + capturedTopic,
		}).JSON(), "", "not called now"},
		{"a certificate on another host", s.alarm(func(e *simcloud.Envelope) {
			e.SigningCertURL = "https://evil.example/smn/SMN_eu-de_00000000000000000000000000000000.pem"
		}).JSON(), "certificate URL", "--smn-cert-hosts"},
		{"an altered value", bytes.Replace(good, []byte("91.37"), []byte("99.99"), 1), "signature", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "body")
			if err := os.WriteFile(file, tc.body, 0o600); err != nil {
				t.Fatal(err)
			}
			s.requests()
			var stdout, stderr bytes.Buffer
			args := []string{"verify", "-f", file, "--smn-cert-hosts", s.CertHost(), "--smn-confirm-hosts", s.ConfirmHost(), "--smn-ca-file", s.ca}
			code := run(t.Context(), args, environment(), nil, &stdout, &stderr)
			out, errs := stdout.String(), stderr.String()
			last := "all checks passed"
			if tc.failed != "" {
				last = "failed: " + tc.failed
			} else if !strings.Contains(out, string(webhook.StateSkipped)+"  topic ") {
				t.Errorf("the skipped check of the topic is not named:\n%s", out)
			}
			if (code == exitOK) != (tc.failed == "") || code > exitError || !strings.HasSuffix(out, "\n"+last+"\n") || !strings.Contains(out, tc.want) || errs != "" {
				t.Errorf("exit code %d, want %q and %q:\n%s%s", code, last, tc.want, out, errs)
			}
			if strings.Contains(out, "secret-token") || strings.ContainsFunc(out, func(r rune) bool { return r < ' ' && r != '\n' }) {
				t.Errorf("a token or a control character in\n%s", out)
			}
			_, later, _ := strings.Cut(out, string(webhook.StateFailed))
			if strings.Contains(later, string(webhook.StateFailed)) || strings.Contains(later, "\n"+string(webhook.StateOK)+" ") {
				t.Errorf("verify continued after the failure:\n%s", out)
			}
			requests := s.requests()
			if early := tc.failed == "certificate URL"; early != (len(requests) == 0) {
				t.Errorf("requests %v", requests)
			}
			for _, r := range requests {
				if !strings.HasPrefix(r, "GET /smn/SMN_") {
					t.Errorf("request %s, want only the certificate", r)
				}
			}
		})
	}
}
