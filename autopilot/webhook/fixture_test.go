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
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
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
