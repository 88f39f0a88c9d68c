// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// host is one of the cloud's: it answers with a text after a while.
type host struct {
	text  string
	after time.Duration
	asked atomic.Int64
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	time.Sleep(h.after)
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(h.text))}, nil
}

// TestBurstOfNewDatabasesIsConfirmedAtOnce: the confirmations of 140 new databases come at the same time, to a replica
// without a certificate in memory whose cache is late, while strangers ask for topics that nobody has.
func TestBurstOfNewDatabasesIsConfirmedAtOnce(t *testing.T) {
	for _, tc := range []struct {
		name    string
		watches bool // the cache knows the autopilots, though not yet their topics
		flood   int  // strangers
	}{
		{"the cache lacks the topics", true, 300},
		{"the cache lacks the autopilots", false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newKube(t, time.Hour) // the watch is late
				topics := make([]string, 140)
				for i := range topics {
					a := k.create(fmt.Sprintf("db-%d", i))
					topics[i] = "urn:smn:eu-de:" + project + ":" + v1alpha1.CloudName(a.Namespace, a.Name, string(a.UID))
				}
				if tc.watches {
					k.watch()
				}
				for i, topic := range topics {
					k.set(fmt.Sprintf("db-%d", i), func(s *v1alpha1.Status) { s.Alarms.TopicURN = topic })
				}
				certs := &host{text: string(certificate(&signingKey().PublicKey, signingKey(), nil)), after: 20 * time.Millisecond}
				console := &host{after: 20 * time.Millisecond}
				b := newBench(t)
				b.Store, b.Keys = k, smn.NewKeys(smn.Fixed("smn.example"), &http.Client{Transport: certs}, noon)
				b.Confirm = &http.Client{Transport: console}

				confirmation := func(i int, topic string) string {
					return signedBody(m{
						"type": "SubscriptionConfirmation", "subject": "<none>", "topic_urn": topic, "message_id": fmt.Sprintf("%032x", i),
						"subscribe_url": "https://console.example" + confirmPath + "?topic_urn=" + topic, "signing_cert_url": "https://smn.example" + certPath,
					})
				}
				var mu sync.Mutex
				answers := map[string]int{}
				var all sync.WaitGroup
				for i := range tc.flood {
					body := confirmation(i, fmt.Sprintf("urn:smn:eu-de:%s:autopilot_default_%d_12345678", project, i))
					all.Go(func() { b.post(body) })
				}
				for i, topic := range topics {
					body := confirmation(i, topic)
					all.Go(func() {
						w := b.post(body)
						mu.Lock()
						defer mu.Unlock()
						answers[fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))]++
					})
				}
				all.Wait()
				if n := answers["200 confirmed"]; n < 140*95/100 || console.asked.Load() != int64(n) {
					t.Errorf("%d of 140 were confirmed at once, by %d links: %v", n, console.asked.Load(), answers)
				}
				if n := certs.asked.Load(); n != 1 {
					t.Errorf("the certificate was fetched %d times", n)
				}
			})
		})
	}
}
