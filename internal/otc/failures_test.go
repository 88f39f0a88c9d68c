// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net/http"
	"strings"
	"testing"
)

func TestFailuresReturnsLastFailureOfEachService(t *testing.T) {
	status := http.StatusOK
	c := connectTo(t, &fake{service: func(w http.ResponseWriter, _ *http.Request) {
		reply(w, status, `{"topics":[],"code":"SMN.0007","message":"too many <topics>"}`)
	}}, Options{})
	listWith := func(api *Cloud, next int) {
		status = next
		_, _ = api.Topics(t.Context()) // Failures returns the error
	}
	listWith(c, http.StatusOK)
	listWith(c, http.StatusNotFound)
	if got := c.Failures(); len(got) != 0 {
		t.Errorf("a success and a missing object are failures: %+v", got)
	}
	listWith(c.Sparing(), http.StatusForbidden)
	listWith(c, http.StatusOK)
	got := c.Failures()
	if len(got) != 1 || got[0].Service != "smn" || got[0].Time.IsZero() ||
		!strings.Contains(got[0].Text, "403 SMN.0007 too many <topics>") {
		t.Errorf("the failures are %+v", got)
	}
}
