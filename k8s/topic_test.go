// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	someUID      = "0a1b2c3d-0000-4000-8000-000000000000"
	noSuchObject = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"x"},"code":404}`
	urnStart     = "urn:smn:eu-de:0123456789abcdef0123456789abcdef:"
)

// TestAnUnknownTopicCostsOneGet records the requests to an API server that has one RdsAutopilot.
func TestAnUnknownTopicCostsOneGet(t *testing.T) {
	for _, tc := range []struct {
		name, has, topic string // of the autopilot and of the topic: namespace/name
		urn              string // what its status has, the topic's if empty
		asked            string
		found            bool
	}{
		{"ours", "ns/db", "ns/db", "", "get ns/db", true},
		{"with a dot", "ns/my.db", "ns/my.db", "", "get ns/my-db, list ns", true},
		{"with a name that was cut", "ns/" + strings.Repeat("d", 100), "ns/" + strings.Repeat("d", 100), "", "get ns/" + strings.Repeat("d", 78) + ", list ns", true},
		{"with a namespace that was cut", strings.Repeat("n", 63) + "/" + strings.Repeat("d", 50), strings.Repeat("n", 63) + "/" + strings.Repeat("d", 50), "", "list ", true},
		{"nobody's", "ns/db", "ns/other", "", "get ns/other", false},
		{"an older one's of the same name", "ns/db", "ns/db", "urn:another", "get ns/db", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			namespace, name, _ := strings.Cut(tc.has, "/")
			topicNS, topicDB, _ := strings.Cut(tc.topic, "/")
			urn := urnStart + autopilotv1.CloudName(topicNS, topicDB, someUID)
			status := tc.urn
			if status == "" && tc.has == tc.topic {
				status = urn
			}
			object := fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":%q},"status":{"alarms":{"topicURN":%q}}}`, namespace, name, someUID, status)
			var asked []string
			c, err := connect(t, func(r *http.Request) (int, string) {
				if r.URL.Query().Get("limit") == "1" {
					return empty(r) // Connect
				}
				path := strings.TrimPrefix(r.URL.Path, "/apis/autopilot.otc.mcsps.de/v1alpha1/")
				ns, resource, _ := strings.Cut(strings.TrimPrefix(path, "namespaces/"), "/rdsautopilots")
				if resource == "" { // a list
					asked = append(asked, "list "+strings.TrimPrefix(ns, "rdsautopilots"))
					return 200, `{"metadata":{},"items":[` + object + `]}`
				}
				asked = append(asked, "get "+ns+resource)
				if resource != "/"+name || ns != namespace {
					return 404, noSuchObject
				}
				return 200, object
			})
			if err != nil {
				t.Fatal(err)
			}
			found, err := c.ByTopicLive(t.Context(), urn)
			if err != nil || (len(found) == 1) != tc.found || tc.found && found[0].UID != types.UID(someUID) {
				t.Errorf("found %v, %v", found, err)
			}
			if got := strings.Join(asked, ", "); got != tc.asked {
				t.Errorf("asked: %s, want %s", got, tc.asked)
			}
		})
	}
}

// Anyone on the internet can name topics.
func TestListsForUnknownTopicsAreLimited(t *testing.T) {
	lists := 0
	c, err := connect(t, func(r *http.Request) (int, string) {
		if limit := r.URL.Query().Get("limit"); limit != "" && limit != "1" {
			lists++
		} else if strings.Contains(r.URL.Path, "/rdsautopilots/") {
			return 404, noSuchObject
		}
		return 200, `{"metadata":{},"items":[]}`
	})
	if err != nil {
		t.Fatal(err)
	}
	limited := 0
	for i := range 50 {
		if _, err := c.ByTopicLive(t.Context(), fmt.Sprintf("%sautopilot_ns_a-%d_12345678", urnStart, i)); err != nil {
			limited++
		}
	}
	if lists+limited != 50 || limited == 0 { // on a slow machine there are more lists
		t.Errorf("%d lists, %d refused", lists, limited)
	}
	if found, err := c.ByTopicLive(t.Context(), urnStart+"autopilot_ns_db_12345678"); err != nil || len(found) > 0 {
		t.Errorf("a topic that needs no list: %v, %v", found, err)
	}
}
