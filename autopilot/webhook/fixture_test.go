// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/rsa"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	project  = "0123456789abcdef0123456789abcdef"
	ourTopic = "urn:smn:eu-de:" + project + ":autopilot_ns_db_12345678"
	ruleID   = "al1700000000000AbCdEfGhI"
	instance = "00112233445566778899aabbccddeeffin01"
	nodeID   = "00112233445566778899aabbccddeeffno01"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// fakeStore is a store with one database. A test sets how it fails. The package k8s tests the real store, and
// test/bubble the receiver with the real store.
type fakeStore struct {
	mu       sync.Mutex
	stored   *v1alpha1.RdsAutopilot
	writes   int
	down     error // returned by every request; nil if the API server works
	conflict int   // number of the next writes that conflict with another writer
	panics   bool
	// The cache does not have the topic yet, or the rules of the object.
	cacheLacksTopic, cacheLacksRules bool
}

func newFakeStore() *fakeStore {
	a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", Generation: 1}}
	a.Status = armed(ourTopic)
	return &fakeStore{stored: a}
}

// armed returns the status of a database whose storage rule exists.
func armed(topic string) (s v1alpha1.Status) {
	s.Alarms = v1alpha1.Alarms{TopicURN: topic, Rules: []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: ruleID}}}
	s.Instance = &v1alpha1.Instance{ID: instance, NodeIDs: []string{nodeID}}
	return s
}

func (f *fakeStore) ByTopic(urn string) []*v1alpha1.RdsAutopilot {
	if f.panics {
		panic("the store is broken")
	}
	found, _ := f.ByTopicLive(context.Background(), urn)
	if f.cacheLacksRules && len(found) > 0 {
		found[0].Status.Alarms.Rules = nil
	}
	if f.cacheLacksTopic {
		return nil
	}
	return found
}

func (f *fakeStore) ByTopicLive(ctx context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error) {
	found, _ := f.LiveAutopilot(ctx, "", "")
	if found.Status.Alarms.TopicURN != urn {
		return nil, f.down
	}
	return []*v1alpha1.RdsAutopilot{found}, f.down
}

func (f *fakeStore) Expects(string) bool { return false }

func (f *fakeStore) Delivers(path string) bool { return path == "/old" }

func (f *fakeStore) SignedBefore(url string) bool {
	found, _ := f.LiveAutopilot(context.Background(), "", "")
	return found.Status.Intake.SigningCertURL == url
}

func (f *fakeStore) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stored.DeepCopy(), f.down
}

// WriteIntake counts versions as generations, because a fake has no resource version.
func (f *fakeStore) WriteIntake(_ context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	mu    sync.Mutex
	calls int
}

func (*fakeKeys) CheckURL(string) error { return nil }

func (k *fakeKeys) Key(context.Context, string, string, bool) (*rsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	return &signingKey().PublicKey, k.err
}

// bench is a receiver with fakes in place of its store and of the cloud.
type bench struct {
	*Receiver
	store    *fakeStore
	keys     *fakeKeys
	warnings []string // reasons
	notes    []string

	badAnswers atomic.Int64 // counted by send
}

func newBench(t testing.TB) *bench {
	b := &bench{store: newFakeStore(), keys: &fakeKeys{}}
	b.Receiver = New(Options{
		Path: "/smn", Store: b.store, Keys: b.keys, Confirm: http.DefaultClient, ConfirmHosts: []string{"console.example"},
		OurTopics: TopicPrefix("eu-de", project, "autopilot_"), MaxMessageAge: time.Hour,
		Warn: func(_ *v1alpha1.RdsAutopilot, reason, note string) {
			b.warnings, b.notes = append(b.warnings, reason), append(b.notes, note)
		},
		Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: noon,
	})
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
	return fmt.Sprintf(`{"message_type":"alarm","alarm_id":%q,"alarm_status":%q,"time":%d,"namespace":"SYS.RDS",`+
		`"metric_name":%q,"dimension":"rds_cluster_id:%s","alarmValue":[{"time":%d,"value":93.1}]}`,
		rule, status, at.UnixMilli(), metric, inst, at.Add(-time.Minute).UnixMilli())
}

// confirmPath is the path of SMN's confirmation links (SMN umn: http_or_https_message_format.rst).
const confirmPath = "/smn/subscription/confirm"
