package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/kubetest"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

var shared = kubetest.Shared{Options: kubetest.Options{
	CRDs: []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// lagging is a real API server whose watch is late: the cache has not yet heard that an autopilot has a topic.
type lagging struct{ *k8s.Cluster }

func (lagging) ByTopic(string) []*v1alpha1.RdsAutopilot { return nil }

// TestABurstOfNewDatabasesIsConfirmedAtOnce: the confirmations of 140 new databases come at the same time, to a replica
// without a certificate in memory whose cache is late, while strangers ask for topics that nobody has.
func TestABurstOfNewDatabasesIsConfirmedAtOnce(t *testing.T) {
	for _, tc := range []struct {
		name    string
		watches bool // the cache knows the autopilots, though not yet their topics
		flood   int  // strangers
	}{
		{"the cache lacks the topics", true, 300},
		{"the cache lacks the autopilots", false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := shared.Cluster(t)
			ns := cluster.Namespace(t)
			connecting := func() *k8s.Cluster {
				c, err := k8s.Connect(t.Context(), cluster.Config(), k8s.Options{Version: "test", Namespaces: []string{ns}, Log: zap.NewNop()})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			kube := connecting()
			topics := newDatabases(t, connecting(), ns, 140)
			if tc.watches {
				watch(t, kube)
			}
			s := newHarness(t)
			s.confirms(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(20 * time.Millisecond)
				w.WriteHeader(http.StatusOK)
			})
			s.receiver.Store = lagging{kube}
			var strangers, senders sync.WaitGroup
			send := func(body string) string {
				w := httptest.NewRecorder()
				s.receiver.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", strings.NewReader(body)))
				return fmt.Sprint(w.Code, " ", w.Body)
			}
			for i := range tc.flood {
				body := s.confirmation(m{"topic_urn": fmt.Sprintf("%s%d_12345678", ourTopic[:strings.LastIndex(ourTopic, "_")], i)}).json()
				strangers.Go(func() { send(body) })
			}
			var mu sync.Mutex
			answers := map[string]int{}
			for i, topic := range topics {
				link := "https://" + s.consoleHost() + confirmPath + "?token=" + token + "&topic_urn=" + topic
				body := s.confirmation(m{"topic_urn": topic, "subscribe_url": link, "message_id": fmt.Sprintf("%032x", i)}).json()
				senders.Go(func() {
					answer := send(body)
					mu.Lock()
					defer mu.Unlock()
					answers[answer]++
				})
			}
			senders.Wait()
			strangers.Wait()
			if n := answers["200 confirmed\n"]; n < 140*95/100 {
				t.Errorf("%d of 140 were confirmed at once: %v", n, answers)
			}
			if n := s.gets[0].Load(); n != 1 {
				t.Errorf("the certificate was fetched %d times", n)
			}
		})
	}
}

// newDatabases makes so many autopilots with a topic each, and returns their URNs.
func newDatabases(t *testing.T, kube *k8s.Cluster, namespace string, n int) []string {
	t.Helper()
	topics := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			name := fmt.Sprintf("db-%d", i)
			target := &autopilot.Target{Namespace: namespace, Name: name, UID: types.UID(name)}
			if err := kube.CreateAutopilot(t.Context(), target); err != nil {
				t.Error(err)
				return
			}
			a, err := kube.LiveAutopilot(t.Context(), namespace, name)
			if err != nil {
				t.Error(err)
				return
			}
			armed := a.Status
			armed.Alarms.TopicURN = "urn:smn:eu-de:" + project + ":" + alarms.Name(namespace, name, string(a.UID))
			topics[i] = armed.Alarms.TopicURN
			if _, err := kube.WriteStatus(t.Context(), a, armed); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return topics
}

// watch fills the cache.
func watch(t *testing.T, kube *k8s.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- kube.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := kube.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
}
