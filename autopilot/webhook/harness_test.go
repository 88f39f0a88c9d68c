// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	project   = "0123456789abcdef0123456789abcdef"
	topicName = "rds-autopilot_12345678"
	ourTopic  = "urn:smn:eu-de:" + project + ":" + topicName
	ruleID    = "al1700000000000AbCdEfGhI"
	ruleName  = "autopilot_ns_db_12345678_storage"
	instance  = "00112233445566778899aabbccddeeffin01"
	nodeID    = "00112233445566778899aabbccddeeffno01"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// fakeStore is a store with one database. A test sets how it fails. The package k8s tests the real store, and
// test/bubble the receiver with the real store.
type fakeStore struct {
	mu            sync.Mutex
	stored        *v1alpha1.RdsAutopilot
	calls, writes int   // requests to the API server, and those that stored something
	down          error // returned by every request; nil if the API server works
	conflict      int   // number of the next writes that conflict with another writer
	panics        bool
	hangs         bool          // a write returns only when its context ends
	takes         time.Duration // of a write
	// This replica does not know the topic, or the rules of the object.
	lacksTopic, lacksRules bool
}

// newFakeStore returns a store with a database whose storage rule exists.
func newFakeStore() *fakeStore {
	a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", Generation: 1}}
	a.Status.Alarms.Rules = []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: ruleID}}
	a.Status.Instance = &v1alpha1.Instance{ID: instance, NodeIDs: []string{nodeID}}
	return &fakeStore{stored: a}
}

func (f *fakeStore) Topic() v1alpha1.Topic {
	if f.panics {
		panic("the store is broken")
	}
	if f.lacksTopic {
		return v1alpha1.Topic{}
	}
	return v1alpha1.Topic{URN: ourTopic}
}

func (f *fakeStore) ByRule(alarmID string) []*v1alpha1.RdsAutopilot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lacksRules || alarmID != ruleID {
		return nil
	}
	return []*v1alpha1.RdsAutopilot{f.stored.DeepCopy()}
}

func (f *fakeStore) SignedBefore(url string) (that, some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	signed := f.stored.Status.Intake.SigningCertURL
	return signed == url, signed != ""
}

func (f *fakeStore) LiveAutopilot(_ context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if namespace != "ns" || name != "db" {
		return nil, autopilot.ErrGone
	}
	return f.stored.DeepCopy(), f.down
}

// WriteIntake counts versions as generations, because a fake has no resource version.
func (f *fakeStore) WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	if f.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(f.takes)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	switch {
	case f.down != nil:
		return f.down
	case f.conflict > 0:
		f.conflict--
		f.stored.Generation++
		return autopilot.ErrConflict
	case read.Generation != f.stored.Generation:
		return autopilot.ErrConflict
	}
	f.stored.Status.Intake = in
	f.stored.Generation++
	f.writes++
	return nil
}

// fakeKeys returns one key for every URL, with an error if it is set.
type fakeKeys struct {
	err   error
	hangs bool // until the context ends
}

func (fakeKeys) CheckURL(string) error { return nil }

func (k fakeKeys) Key(ctx context.Context, _ string, _ bool) (*rsa.PublicKey, error) {
	if k.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &signingKey().PublicKey, k.err
}

// options returns the options that all receivers have in common.
func options(store Store, keys Keys) Options {
	return Options{
		Path: "/smn", Store: store, Keys: keys, TopicName: topicName, RuleOwner: alarms.ParseRuleName, MaxMessageAge: time.Hour,
		Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: noon,
	}
}

// bench is a receiver with fakes in place of its store and of the cloud.
type bench struct {
	*Receiver
	store *fakeStore
}

func newBench(t testing.TB) *bench {
	b := &bench{store: newFakeStore()}
	o := options(b.store, fakeKeys{})
	o.Confirm, o.ConfirmHosts = http.DefaultClient, []string{"console.example"}
	o.Warn = func(string, string) {}
	b.Receiver = New(o)
	return b
}

func (b *bench) post(body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", strings.NewReader(body)))
	return w
}

// signedBody returns a signed alarm of our database. It is altered before it is signed.
func signedBody(alter m) string {
	f := alarmFields("https://smn.example/smn/x.pem")
	maps.Copy(f, alter)
	return sign(f, signingKey()).json()
}

// alarm returns the message of a notification, whose newest datapoint is 93.1 % a minute before.
func alarm(status, rule, metric, inst string, at time.Time) string {
	return fmt.Sprintf(`{"message_type":"alarm","alarm_name":"`+ruleName+`","alarm_id":%q,"alarm_status":%q,"time":%d,"namespace":"SYS.RDS",`+
		`"metric_name":%q,"dimension":"rds_cluster_id:%s","alarmValue":[{"time":%d,"value":93.1}]}`,
		rule, status, at.UnixMilli(), metric, inst, at.Add(-time.Minute).UnixMilli())
}

// confirmPath is the path of SMN's confirmation links (SMN umn: http_or_https_message_format.rst).
const confirmPath = "/smn/subscription/confirm"

const (
	token    = "5ec2e7f00d" // of confirmation links; no output may contain it
	certPath = "/smn/SMN_eu-de_0f1e2d3c4b5a69788796a5b4c3d2e1f0.pem"
	// elsewhereHost is a host that the receiver must never ask.
	elsewhereHost = "elsewhere.example:8443"
)

// m holds the fields of a message. The value "<none>" omits a field.
type m map[string]string

// signingKey returns SMN's key. It is generated once, because that takes longer than most tests.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey { return newKey(2048) })

func newKey(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

// certificate returns the PEM of a certificate of a public key, signed by another key.
func certificate(public any, by crypto.Signer, alter func(*x509.Certificate)) []byte {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "SMN"},
		NotBefore: noon().Add(-time.Hour), NotAfter: noon().Add(30 * 24 * time.Hour),
	}
	if alter != nil {
		alter(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, by)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// harness is a receiver behind its real server, with the two hosts that it may call.
type harness struct {
	*testing.T
	store         *fakeStore
	receiver      *Receiver
	server        *httptest.Server
	cert, console *countingHost
	fetching      *http.Client // of certificates
	clock         atomic.Pointer[time.Time]
	logs          *observer.ObservedLogs
	reg           *prometheus.Registry

	mu       sync.Mutex
	warnings []string
	secrets  []string
	answers  []answered
}

// answered is an answer of the receiver.
type answered struct {
	status int
	text   string
}

// countingHost is a host of the cloud that counts its requests. A test may replace its handler at any time.
type countingHost struct {
	*httptest.Server
	requests atomic.Int64
	handler  atomic.Pointer[http.HandlerFunc]
}

func newCountingHost(t *testing.T) *countingHost {
	h := &countingHost{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		(*h.handler.Load())(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func newHarness(t *testing.T) *harness {
	s := &harness{T: t, store: newFakeStore(), cert: newCountingHost(t), console: newCountingHost(t)}
	s.setNow(noon())
	s.setCertificate(certificate(&signingKey().PublicKey, signingKey(), nil))
	s.setConsoleHandler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.start()
	return s
}

// start starts a receiver with an empty memory and the present store, as after a restart.
func (s *harness) start() {
	roots := x509.NewCertPool()
	roots.AddCert(s.cert.Certificate())
	client := func(host string) *http.Client {
		c := smn.NewClient(smn.Fixed(host), roots, http.ProxyFromEnvironment)
		c.Transport, c.Timeout = onlyTo{s, host, c.Transport}, 5*time.Minute // for machines that are slow
		s.Cleanup(c.CloseIdleConnections)
		return c
	}
	core, logs := observer.New(zapcore.DebugLevel)
	s.logs, s.reg = logs, prometheus.NewRegistry()
	s.fetching = client(s.certHost())
	o := options(s.store, smn.NewKeys(smn.Fixed(s.certHost()), s.fetching, s.now))
	o.Confirm, o.ConfirmHosts = client(s.consoleHost()), []string{s.consoleHost()}
	o.Warn, o.Log, o.Reg, o.Now = s.warn, zap.New(core), s.reg, s.now
	s.receiver = New(o)
	s.receiver.time = 5 * time.Minute
	s.server = httptest.NewUnstartedServer(nil)
	s.server.Config = s.receiver.Server()
	s.server.Start()
	s.Cleanup(s.server.Close)
}

// onlyTo fails the test at a request to any other host than this one.
type onlyTo struct {
	s    *harness
	host string
	next http.RoundTripper
}

func (o onlyTo) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" || r.URL.Host != o.host {
		o.s.Errorf("the receiver called %s", r.URL.Host)
		return nil, errors.New("not the host of this client")
	}
	return o.next.RoundTrip(r)
}

func (s *harness) now() time.Time                       { return *s.clock.Load() }
func (s *harness) setNow(t time.Time)                   { s.clock.Store(&t) }
func (s *harness) certHost() string                     { return s.cert.Listener.Addr().String() }
func (s *harness) consoleHost() string                  { return s.console.Listener.Addr().String() }
func (s *harness) setCertHandler(h http.HandlerFunc)    { s.cert.handler.Store(&h) }
func (s *harness) setConsoleHandler(h http.HandlerFunc) { s.console.handler.Store(&h) }
func (s *harness) setCertificate(pem []byte) {
	s.setCertHandler(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pem) })
}

func (s *harness) warn(reason, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, reason+": "+note)
}

// alarm returns a signed alarm of our database. It is altered before it is signed.
func (s *harness) alarm(alter m) m {
	f := alarmFields("https://" + s.certHost() + certPath)
	maps.Copy(f, alter)
	return s.sign(f, signingKey())
}

// alarmFields returns the fields of an alarm of our database, without a signature.
func alarmFields(certURL string) m {
	return m{
		"type": "Notification", "message_id": "d84bd6629ef04513ad2e37bffd6e17cb", "topic_urn": ourTopic, "subject": "a subject",
		"message": alarm("alarm", ruleID, "rds039_disk_util", instance, noon()), "timestamp": "2026-11-20T12:00:00Z",
		"signature_version": "v1", "signing_cert_url": certURL,
	}
}

func (s *harness) link() string {
	return "https://" + s.consoleHost() + confirmPath + "?token=" + token + "&topic_urn=" + ourTopic + "&region=eu-de"
}

func (s *harness) confirmation(alter m) m {
	f := m{"type": "SubscriptionConfirmation", "subject": "<none>", "message": "confirm, please", "subscribe_url": s.link()}
	maps.Copy(f, alter)
	return s.alarm(f)
}

// sign signs a message. The signature counts as a secret, which no output may contain.
func (s *harness) sign(f m, key *rsa.PrivateKey) m { return s.addSecret(sign(f, key)) }

func (s *harness) signText(f m, key *rsa.PrivateKey, text string) m {
	return s.addSecret(signText(f, key, text))
}

func (s *harness) addSecret(f m) m {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig := f["signature"]; len(sig) > 40 {
		s.secrets = append(s.secrets, sig[:40])
	}
	return f
}

// sign signs a message unless it has a signature. The signing string is the simulated cloud's, because a fault in ours
// would be in both the signature and its check.
func sign(f m, key *rsa.PrivateKey) m {
	maps.DeleteFunc(f, func(_, v string) bool { return v == "<none>" })
	e := simcloud.Envelope{
		Type: f["type"], MessageID: f["message_id"], TopicURN: f["topic_urn"], Subject: f["subject"], Message: f["message"],
		Timestamp: f["timestamp"], SubscribeURL: f["subscribe_url"],
	}
	return signText(f, key, e.SigningString())
}

func signText(f m, key *rsa.PrivateKey, text string) m {
	if _, given := f["signature"]; given {
		return f
	}
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	f["signature"] = base64.StdEncoding.EncodeToString(signature)
	return f
}

// with returns a copy with a field altered, which leaves the signature as it is.
func (f m) with(key, value string) m {
	out := maps.Clone(f)
	out[key] = value
	maps.DeleteFunc(out, func(_, v string) bool { return v == "<none>" })
	return out
}

func (f m) json() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]string(f)); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// post posts a body and stores the answer.
func (s *harness) post(body string, header ...string) { s.send(strings.NewReader(body), header...) }

func (s *harness) send(body io.Reader, header ...string) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.server.URL+"/smn", body)
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := s.server.Client().Do(req)
	if err != nil {
		s.Error(err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Error(err)
	}
	if retry := resp.Header.Get("Retry-After"); (retry != "") != (resp.StatusCode == http.StatusServiceUnavailable) {
		s.Errorf("Retry-After %q with status %d", retry, resp.StatusCode)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answered{resp.StatusCode, strings.TrimSpace(string(text))})
}
