// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// kube is Kubernetes in memory, and the receiver's way to it through the real client and cache.
type kube struct {
	*k8s.Cluster
	t       *testing.T
	server  *simkube.Server
	others  *k8s.Cluster                // what others do
	patches int                         // how often the receiver tried to write
	before  func(tried int) (err error) // what happens before each of these; nil is nothing
	away    bool                        // no request of the receiver arrives
	stop    func()                      // lets the cache stay as it is
}

// newKube returns a cluster whose watchers see a write that much later. Nothing is watched yet.
func newKube(t *testing.T, watchLag time.Duration) *kube {
	t.Helper()
	server, err := simkube.New(simkube.Options{
		CRDs: []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}, WatchLag: watchLag,
	})
	k := &kube{t: t, server: server}
	k.must(err)
	config, options := server.Config(), k8s.Options{Version: "test", Log: zap.NewNop()}
	k.others, err = k8s.Connect(t.Context(), config, options)
	k.must(err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return way{k, next} })
	k.Cluster, err = k8s.Connect(t.Context(), config, options)
	k.must(err)
	k.stop = func() { _ = k.Run(t.Context()) }
	t.Cleanup(func() { // the test's context is over: this ends what Connect began
		_ = k.others.Run(t.Context())
		k.stop()
	})
	return k
}

func (k *kube) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// way is how the receiver's requests go.
type way struct {
	*kube
	next http.RoundTripper
}

func (w way) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.away {
		return nil, errors.New("connection refused")
	}
	if r.Method == http.MethodPatch && w.before != nil {
		w.patches++
		if err := w.before(w.patches); err != nil {
			return nil, err
		}
	}
	return w.next.RoundTrip(r)
}

// watch fills the cache.
func (k *kube) watch() {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = k.Run(ctx) })
	k.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	k.must(k.WaitForSync(ctx))
}

// create makes an autopilot.
func (k *kube) create(name string) *v1alpha1.RdsAutopilot {
	k.t.Helper()
	k.must(k.others.CreateAutopilot(k.t.Context(), &autopilot.Target{Namespace: metav1.NamespaceDefault, Name: name, UID: "rds-of-it"}))
	return k.live(name)
}

func (k *kube) live(name string) *v1alpha1.RdsAutopilot {
	k.t.Helper()
	a, err := k.others.LiveAutopilot(k.t.Context(), metav1.NamespaceDefault, name)
	k.must(err)
	return a
}

// set is the leader's write.
func (k *kube) set(name string, change func(*v1alpha1.Status)) {
	k.t.Helper()
	a := k.live(name)
	next := *a.Status.DeepCopy()
	change(&next)
	_, err := k.others.WriteStatus(k.t.Context(), a, next)
	k.must(err)
}

const topic = "urn:smn:eu-de:" + project + ":autopilot_default_db_12345678"

func arm(s *v1alpha1.Status) { *s = armed(topic) }

// The rules of the store that are Kubernetes', through the real client and cache.
func TestReceiverStoresSignalsThroughTheRealClient(t *testing.T) {
	busy := func(times int) func(*kube) {
		return func(k *kube) {
			k.before = func(tried int) error {
				if tried <= times {
					k.set("db", func(s *v1alpha1.Status) { s.ObservedGeneration = int64(tried) })
				}
				return nil
			}
		}
	}
	for name, tc := range map[string]struct {
		status int
		result result
		known  bool // the cache knows the topic and its rules
		late   func(*kube)
	}{
		"an alarm":                      {200, resultStored, true, nil},
		"a topic that the cache lacks":  {200, resultStored, false, func(k *kube) { k.set("db", arm) }},
		"a rule that the cache lacks":   {200, resultStored, false, func(k *kube) { k.set("db", arm) }},
		"others write at the same time": {200, resultStored, true, busy(3)},
		"all the time": {503, resultUnavailable, true, func(k *kube) {
			busy(1 << 30)(k)
			others := k.before
			k.before = func(tried int) error {
				time.Sleep(100 * time.Millisecond)
				return others(tried)
			}
		}},
		"the API server is away":                               {503, resultUnavailable, true, func(k *kube) { k.away = true }},
		"a rule that the cache lacks, the API server is away":  {503, resultUnavailable, false, func(k *kube) { k.set("db", arm); k.away = true }},
		"a topic that the cache lacks, the API server is away": {503, resultUnavailable, false, func(k *kube) { k.set("db", arm); k.away = true }},
		"it is deleted just then": {200, resultIgnored, true, func(k *kube) {
			k.before = func(int) error {
				a := k.live("db")
				return errors.Join(k.others.RemoveFinalizer(k.t.Context(), a), k.others.DeleteAutopilot(k.t.Context(), a))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k, b := newKube(t, 0), newBench(t)
				b.Store = k
				k.create("db")
				switch {
				case tc.known:
					k.set("db", arm)
				case strings.Contains(name, "rule"):
					k.set("db", func(s *v1alpha1.Status) { arm(s); s.Alarms.Rules = nil })
				}
				k.watch()
				k.stop()
				if tc.late != nil {
					tc.late(k)
				}
				w := b.post(signedBody(map[string]string{"topic_urn": topic}))
				if w.Code != tc.status || strings.TrimSpace(w.Body.String()) != string(tc.result) {
					t.Errorf("answered %d %s, want %d %s", w.Code, w.Body, tc.status, tc.result)
				}
				if tc.result == resultIgnored {
					return
				}
				want := armed(topic)
				if tc.result == resultStored {
					at, measured := metav1.NewMicroTime(noon()), metav1.NewMicroTime(noon().Add(-time.Minute))
					want.Intake = v1alpha1.Intake{SigningCertURL: "https://smn.example/smn/x.pem", Signals: []v1alpha1.Signal{{
						Metric: v1alpha1.MetricStorage, AlarmID: ruleID, State: v1alpha1.StateAlarm, AlarmTime: at, ReceivedTime: at,
						MessageID: "d84bd6629ef04513ad2e37bffd6e17cb", ValuePercent: "93.1", DatapointTime: &measured,
					}}}
				}
				got := k.live("db").Status
				got.ObservedGeneration = 0
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			})
		})
	}
}
