package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

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
			k := newKube(t, time.Hour) // the watch is late
			topics := make([]string, 140)
			for i := range topics {
				a := k.create(fmt.Sprintf("db-%d", i))
				topics[i] = "urn:smn:eu-de:" + project + ":" + alarms.Name(a.Namespace, a.Name, string(a.UID))
			}
			if tc.watches {
				k.watch()
			}
			for i, topic := range topics {
				k.set(fmt.Sprintf("db-%d", i), func(s *v1alpha1.Status) { s.Alarms.TopicURN = topic })
			}
			s := newHarness(t)
			s.confirms(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(20 * time.Millisecond)
				w.WriteHeader(http.StatusOK)
			})
			s.receiver.Store = k
			var strangers, senders sync.WaitGroup
			send := func(body string) string {
				w := httptest.NewRecorder()
				s.receiver.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/smn", strings.NewReader(body)))
				return fmt.Sprint(w.Code, " ", w.Body)
			}
			theirs, ours := make([]string, tc.flood), make([]string, len(topics)) // made before, so that they come at once
			for i := range theirs {
				theirs[i] = s.confirmation(m{"topic_urn": fmt.Sprintf("%s%d_12345678", ourTopic[:strings.LastIndex(ourTopic, "_")], i)}).json()
			}
			for i, topic := range topics {
				link := "https://" + s.consoleHost() + confirmPath + "?token=" + token + "&topic_urn=" + topic
				ours[i] = s.confirmation(m{"topic_urn": topic, "subscribe_url": link, "message_id": fmt.Sprintf("%032x", i)}).json()
			}
			for _, body := range theirs {
				strangers.Go(func() { send(body) })
			}
			var mu sync.Mutex
			answers := map[string]int{}
			for _, body := range ours {
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
