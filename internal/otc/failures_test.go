// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net/http"
	"strings"
	"testing"
)

func TestFailuresReturnsLastFailureOfEachService(t *testing.T) {
	status := http.StatusOK
	f := &fake{service: func(w http.ResponseWriter, r *http.Request) {
		if status != http.StatusOK && strings.Contains(r.URL.Path, "topics") {
			reply(w, status, `{"request_id":"r","code":"SMN.0007","message":"too many <topics>"}`)
			return
		}
		reply(w, 200, `{"topics":[],"instances":[]}`)
	}}
	c := connectTo(t, f, Options{Rate: 1000})
	ask := func(api *Cloud) { _, _ = api.Topics(t.Context()) } // the failure is what is looked at
	ask(c)
	status = http.StatusNotFound
	ask(c)
	if got := c.Failures(); len(got) != 0 {
		t.Errorf("after nothing but answers: %+v", got)
	}
	status = http.StatusForbidden
	ask(c.Sparing())
	status = http.StatusOK
	ask(c)
	got := c.Failures()
	if len(got) != 1 || got[0].Service != "smn" || !strings.Contains(got[0].Text, "403 SMN.0007 too many <topics>") || got[0].Time.IsZero() {
		t.Errorf("the failures are %+v", got)
	}
}
