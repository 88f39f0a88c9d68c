// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// host is a host of the cloud that answers with a text after 20 ms.
type host struct {
	text     string
	requests atomic.Int64
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.requests.Add(1)
	time.Sleep(20 * time.Millisecond)
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(h.text))}, nil
}

// newDatabases is a store with many databases whose topics the cache lacks. It looks up a topic in 20 ms.
type newDatabases struct {
	*fakeStore
	expects bool // the cache has the autopilots
}

func newDatabase(urn string) bool { return strings.Contains(urn, "_new-") }

func (newDatabases) ByTopic(string) []*v1alpha1.RdsAutopilot { return nil }

func (d newDatabases) Expects(urn string) bool { return d.expects && newDatabase(urn) }

func (newDatabases) ByTopicLive(_ context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error) {
	time.Sleep(20 * time.Millisecond)
	if !newDatabase(urn) {
		return nil, nil
	}
	return []*v1alpha1.RdsAutopilot{{Status: armed(urn)}}, nil
}

func (newDatabases) WriteIntake(context.Context, *v1alpha1.RdsAutopilot, v1alpha1.Intake) error {
	return nil
}

// The confirmations of 140 new databases arrive at the same time. The replica has no certificate in memory, and its
// cache lacks their topics. Strangers send confirmations for topics that do not exist.
func TestBurstOfNewDatabasesIsConfirmedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		expects   bool
		strangers int
	}{
		"the cache lacks the topics, and 300 strangers": {true, 300},
		"the cache lacks the autopilots":                {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				certs, console := &host{text: string(certificate(&signingKey().PublicKey, signingKey(), nil))}, &host{}
				b := newBench(t)
				b.Store = newDatabases{b.store, tc.expects}
				b.Keys = smn.NewKeys(smn.Fixed("smn.example"), &http.Client{Transport: certs}, noon)
				b.Confirm = &http.Client{Transport: console}
				confirmation := func(i int, name string) string {
					topic := "urn:smn:eu-de:" + project + ":autopilot_ns_" + name + strconv.Itoa(i) + "_12345678"
					return signedBody(m{
						"type": "SubscriptionConfirmation", "subject": "<none>", "topic_urn": topic,
						"message_id":       fmt.Sprintf("%032x", i),
						"subscribe_url":    "https://console.example" + confirmPath + "?topic_urn=" + topic,
						"signing_cert_url": "https://smn.example" + certPath,
					})
				}
				var all sync.WaitGroup
				for i := range tc.strangers {
					body := confirmation(i, "invented-")
					all.Go(func() { b.post(body) })
				}
				var confirmed atomic.Int64
				for i := range 140 {
					body := confirmation(i, "new-")
					all.Go(func() {
						if w := b.post(body); strings.TrimSpace(w.Body.String()) == string(resultConfirmed) {
							confirmed.Add(1)
						}
					})
				}
				all.Wait()
				if n := confirmed.Load(); n < 140*95/100 || console.requests.Load() != n {
					t.Errorf("%d of 140 were confirmed at once, by %d links", n, console.requests.Load())
				}
				if n := certs.requests.Load(); n != 1 {
					t.Errorf("the certificate was fetched %d times", n)
				}
			})
		})
	}
}
