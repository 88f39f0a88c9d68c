// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const capturedTopic = "urn:smn:eu-de:0123456789abcdef0123456789abcdef:autopilot_ns_db_12345678"

// sender is a simulated cloud that signs, and a list of what was asked of it.
type sender struct {
	*otcsim.Cloud
	ca string // file

	mu    sync.Mutex
	asked []string
}

func newSender(t *testing.T) *sender {
	t.Helper()
	s := &sender{ca: filepath.Join(t.TempDir(), "ca.pem")}
	cloud, err := otcsim.Start(otcsim.Options{Fault: func(r *http.Request) *otcsim.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
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

func (s *sender) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := slices.Clone(s.asked)
	s.asked = nil
	return asked
}

func (s *sender) flags() []string {
	return []string{"--smn-cert-hosts", s.CertHost(), "--smn-confirm-hosts", s.ConfirmHost(), "--smn-ca-file", s.ca}
}

// alarm is an authentic one, altered before it is signed.
func (s *sender) alarm(alter func(*otcsim.Envelope)) otcsim.Envelope {
	e := otcsim.Envelope{
		TopicURN: capturedTopic, Subject: "s", UnsubscribeURL: "https://" + s.ConfirmHost() + "/smn/subscription/unsubscribe?token=secret-token",
		Message: `{"message_type":"alarm","alarm_id":"al1700000000000AbCdEfGhI","alarm_status":"alarm","time":1720605661184,"namespace":"SYS.RDS",` +
			`"metric_name":"rds039_disk_util","dimension":"rds_cluster_id:00112233445566778899aabbccddeeffin01","alarmValue":[{"time":1720605600000,"value":91.37}]}`,
	}
	if alter != nil {
		alter(&e)
	}
	return s.Sign(e)
}

func (s *sender) confirmation(alter func(*otcsim.Envelope)) otcsim.Envelope {
	e := otcsim.Envelope{
		Type: otcsim.TypeConfirmation, TopicURN: capturedTopic, Message: "please confirm",
		SubscribeURL: "https://" + s.ConfirmHost() + "/smn/subscription/confirm?token=secret-token&topic_urn=" + capturedTopic,
	}
	if alter != nil {
		alter(&e)
	}
	return s.Sign(e)
}

// after alters an envelope that is signed already.
func after(e otcsim.Envelope, alter func(*otcsim.Envelope)) []byte {
	alter(&e)
	return e.JSON()
}

func swap(body []byte, from, to string) []byte {
	out := bytes.Replace(body, []byte(from), []byte(to), 1)
	if bytes.Equal(out, body) {
		return []byte("nothing was swapped")
	}
	return out
}

// TestVerifyAndTheReceiverAgree gives each body to both.
func TestVerifyAndTheReceiverAgree(t *testing.T) {
	s := newSender(t)
	weak := newSender(t)
	if err := weak.UseSigningKey(rsaKey(t, 1024), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	expired := newSender(t)
	if err := expired.UseSigningKey(rsaKey(t, 2048), time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	good := s.alarm(nil).JSON()
	cert := s.alarm(nil).SigningCertURL
	for _, tc := range []struct {
		name   string
		from   *sender
		body   []byte
		failed string // the check; empty if all pass
		says   string // somewhere
		status int    // of the receiver
	}{
		{"an alarm", s, good, "", "91.37 % at 2024-07-10T10:00:00Z", 200},
		{"an alarm that was written with spaces", s, swap(good, `{"signature":`, "{\n  \"signature\" : "), "", "rds039_disk_util", 200},
		{"a confirmation", s, s.confirmation(nil).JSON(), "", "not called now", 200},
		{"a cancellation", s, s.confirmation(func(e *otcsim.Envelope) { e.Type = otcsim.TypeUnsubscribe }).JSON(), "", "never called", 200},
		{"nothing", s, nil, "envelope", "", 400},
		{"1 MiB", s, bytes.Repeat([]byte(" "), 1<<20), "envelope", "1048576 bytes", 400},
		{"1 MiB and a byte", s, bytes.Repeat([]byte(" "), 1<<20+1), "size", "more than 1048576 bytes", 413},
		{"two values", s, append(bytes.Clone(good), good...), "envelope", "", 400},
		{"a key twice", s, swap(good, `{"signature":`, `{"type":"Notification","signature":`), "envelope", "twice", 400},
		{"a key in capitals", s, swap(good, `"message":`, `"MESSAGE":`), "envelope", "message", 400},
		{"a subject of two lines", s, s.alarm(func(e *otcsim.Envelope) { e.Subject = "a\nb" }).JSON(), "envelope", "subject", 400},
		{"no topic", s, s.alarm(func(e *otcsim.Envelope) { e.TopicURN = "x" }).JSON(), "envelope", "topic_urn", 400},
		{"another version", s, s.alarm(func(e *otcsim.Envelope) { e.SignatureVersion = "v2" }).JSON(), "envelope", "signature_version", 400},
		{"another type", s, s.alarm(func(e *otcsim.Envelope) { e.Type = "HttpSubscriptionUserConfirm" }).JSON(), "type", "HttpSubscriptionUserConfirm", 200},
		{"a certificate on another host", s, s.alarm(func(e *otcsim.Envelope) { e.SigningCertURL = weak.alarm(nil).SigningCertURL }).JSON(), "certificate URL", "--smn-cert-hosts", 403},
		{"a certificate over http", s, s.alarm(func(e *otcsim.Envelope) { e.SigningCertURL = "http" + strings.TrimPrefix(cert, "https") }).JSON(), "certificate URL", "", 403},
		{"a certificate that is not there", s, s.alarm(func(e *otcsim.Envelope) {
			e.SigningCertURL = cert[:len(cert)-len("0123.pem")] + "0000.pem"
		}).JSON(), "certificate", "404", 503},
		{"a weak certificate", weak, weak.alarm(nil).JSON(), "certificate", "1024 bits", 503},
		{"an expired certificate", expired, expired.alarm(nil).JSON(), "certificate", "is valid from", 503},
		{"an altered alarm", s, swap(good, "91.37", "99.99"), "signature", "", 403},
		{"an altered topic", s, after(s.alarm(nil), func(e *otcsim.Envelope) { e.TopicURN += "9" }), "signature", "", 403},
		{"an altered time", s, after(s.alarm(nil), func(e *otcsim.Envelope) {
			e.Timestamp = time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05Z")
		}), "signature", "", 403},
		{"an altered id", s, after(s.alarm(nil), func(e *otcsim.Envelope) { e.MessageID = strings.Repeat("0", 32) }), "signature", "", 403},
		{"an altered link", s, after(s.confirmation(nil), func(e *otcsim.Envelope) { e.SubscribeURL += "1" }), "signature", "", 403},
		{"a signature that is no base64", s, after(s.alarm(nil), func(e *otcsim.Envelope) { e.Signature = "***" }), "signature", "base64", 403},
		{"a confirmation shown as an alarm", s, after(s.confirmation(nil), func(e *otcsim.Envelope) { e.Type = otcsim.TypeNotification }), "signature", "", 403},
		{"a link elsewhere", s, s.confirmation(func(e *otcsim.Envelope) {
			e.SubscribeURL = "https://evil.example/smn/subscription/confirm?topic_urn=" + capturedTopic
		}).JSON(), "message", "evil.example", 200},
		{"text", s, s.alarm(func(e *otcsim.Envelope) { e.Message = "hello" }).JSON(), "message", "", 200},
		{"the template", s, s.alarm(func(e *otcsim.Envelope) { e.Message = `{"version":"v1","data":{}}` }).JSON(), "message", "template", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "body")
			if err := os.WriteFile(file, tc.body, 0o600); err != nil {
				t.Fatal(err)
			}
			tc.from.requests()
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"verify", "-f", file}, tc.from.flags()...), environment(), nil, &out, &errs)
			asked := tc.from.requests()
			last := "all checks passed"
			if tc.failed != "" {
				last = "failed: " + tc.failed
			}
			if (code == exitOK) != (tc.failed == "") || code > exitError || !strings.HasSuffix(out.String(), "\n"+last+"\n") || !strings.Contains(out.String(), tc.says) || errs.Len() > 0 {
				t.Errorf("exit code %d, want %q and %q:\n%s%s", code, last, tc.says, &out, &errs)
			}
			if strings.Contains(out.String(), "secret-token") || strings.ContainsFunc(out.String(), func(r rune) bool { return r < ' ' && r != '\n' }) {
				t.Errorf("a token or a control character in\n%s", &out)
			}
			_, later, _ := strings.Cut(out.String(), string(webhook.StateFailed))
			if strings.Contains(later, string(webhook.StateFailed)) || strings.Contains(later, "\n"+string(webhook.StateOK)+" ") {
				t.Errorf("it went on after the failure:\n%s", &out)
			}
			for _, a := range asked {
				if !strings.HasPrefix(a, "GET /smn/SMN_") {
					t.Errorf("it asked %s", a)
				}
			}
			if early := slices.Contains([]string{"size", "envelope", "type", "certificate URL"}, tc.failed); early != (len(asked) == 0) {
				t.Errorf("it asked %v", asked)
			}
			if got := receiverStatus(t, tc.from, tc.body); got != tc.status {
				t.Errorf("the receiver answers %d, want %d", got, tc.status)
			}
		})
	}
}

// receiverStatus is what serve would answer, if the topic were ours.
func receiverStatus(t *testing.T, s *sender, body []byte) int {
	t.Helper()
	roots, err := app.TrustRoots(s.ca)
	if err != nil {
		t.Fatal(err)
	}
	hosts := smn.Fixed(s.CertHost())
	r := webhook.New(webhook.Options{
		Path: "/smn", Store: everyTopic{}, Keys: smn.NewKeys(hosts, smn.NewClient(hosts, roots), time.Now),
		Confirm: &http.Client{Transport: refuse{}}, ConfirmHosts: []string{s.ConfirmHost()}, OurTopics: func(string) bool { return true },
		MaxMessageAge: time.Hour, Warn: func(*v1alpha1.RdsAutopilot, string, string) {}, Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: time.Now,
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", bytes.NewReader(body)))
	return w.Code
}

// everyTopic is a store in which every topic is ours and everything can be stored.
type everyTopic struct{}

func (everyTopic) ByTopic(string) []*v1alpha1.RdsAutopilot { return []*v1alpha1.RdsAutopilot{{}} }

func (everyTopic) ByTopicLive(context.Context, string) ([]*v1alpha1.RdsAutopilot, error) {
	return nil, errors.New("the cache has it")
}

func (everyTopic) Expects(string) bool      { return false }
func (everyTopic) SignedBefore(string) bool { return false }

func (everyTopic) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	return &v1alpha1.RdsAutopilot{}, nil
}

func (everyTopic) WriteIntake(context.Context, *v1alpha1.RdsAutopilot, v1alpha1.Intake) error {
	return nil
}

// refuse stands for the confirmation host: it answers, and leads nowhere.
type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestVerifyIsCalledWrongly(t *testing.T) {
	for name, args := range map[string][]string{
		"no file":          {},
		"no such file":     {"-f", "/nonexistent"},
		"a folder":         {"-f", t.TempDir()},
		"an argument":      {"-f", "-", "body.json"},
		"an unknown flag":  {"-f", "-", "--public-url", "https://a.example"},
		"no such CA file":  {"-f", "-", "--smn-ca-file", "/nonexistent"},
		"an empty CA file": {"-f", "-", "--smn-ca-file", os.DevNull},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), append([]string{"verify"}, args...), environment(), strings.NewReader("{}"), &out, &errs); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 {
				t.Errorf("it says %q and %q, want one line", out.String(), errs.String())
			}
		})
	}
}

// TestVerifyBinary is the real binary: standard input, file, environment and exit codes.
func TestVerifyBinary(t *testing.T) {
	t.Parallel()
	binary, err := world.Binary(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(t)
	good := s.alarm(nil).JSON()
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		args  []string
		env   []string
		stdin []byte
		code  int
		says  string
	}{
		{"from a file", append(s.flags(), "-f", file), nil, nil, 0, "all checks passed"},
		{"from standard input", append(s.flags(), "-f", "-"), nil, good, 0, "all checks passed"},
		{"flags from the environment", []string{"-f", "-"}, []string{"RDS_AUTOPILOT_SMN_CERT_HOSTS=" + s.CertHost(), "RDS_AUTOPILOT_SMN_CA_FILE=" + s.ca}, good, 0, "all checks passed"},
		{"tampered with", append(s.flags(), "-f", "-"), nil, swap(good, "91.37", "99.99"), 1, "failed: signature"},
		{"a host that is not configured", []string{"-f", "-"}, nil, good, 1, "failed: certificate URL"},
		{"a host that nobody trusts", []string{"-f", "-", "--smn-cert-hosts", s.CertHost()}, nil, good, 1, "failed: certificate"},
		{"no file", s.flags(), nil, nil, 2, "-f is required"},
		{"help", []string{"--help"}, nil, nil, 0, "It exits with 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), binary, append([]string{"verify"}, tc.args...)...)
			cmd.Env, cmd.Stdin = append(tc.env, "HOME="+t.TempDir()), bytes.NewReader(tc.stdin)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(out), tc.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, tc.code, tc.says, out)
			}
		})
	}
}

func TestVerifyExplainsWhatItDoesNotKnow(t *testing.T) {
	s := newSender(t)
	var out bytes.Buffer
	body := s.alarm(func(e *otcsim.Envelope) { e.Timestamp = "2020-01-01T00:00:00Z" }).JSON()
	if code := run(t.Context(), append([]string{"verify", "-f", "-"}, s.flags()...), environment(), bytes.NewReader(body), &out, io.Discard); code != exitOK {
		t.Errorf("an old message: exit code %d", code)
	}
	for _, want := range []string{
		fmt.Sprintf("%s  topic            %s", webhook.StateSkipped, capturedTopic),
		"note     age              signed 2020-01-01T00:00:00Z",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
