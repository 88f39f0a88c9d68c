// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault   *Fault
		status  int // 0 is no complete reply
		applied bool
	}{
		"none":                           {nil, 201, true},
		"refused before it is applied":   {&Fault{Status: 503, Header: http.Header{"Retry-After": {"7"}}, Body: "x"}, 503, false},
		"applied, then refused":          {&Fault{Status: 504, Apply: true}, 504, true},
		"delayed":                        {&Fault{Delay: time.Millisecond}, 201, true},
		"delayed beyond the client":      {&Fault{Delay: time.Hour}, 0, false},
		"hangs":                          {&Fault{Hang: true}, 0, false},
		"applied, then hangs":            {&Fault{Hang: true, Apply: true}, 0, true},
		"the reply is cut in the middle": {&Fault{Cut: true}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, Options{Fault: func(r *http.Request) *Fault {
				if service, op := OperationOf(r); service != "smn" || op != "CreateTopic" {
					return nil
				}
				if body, err := io.ReadAll(r.Body); err != nil || !bytes.Contains(body, []byte("name")) {
					t.Errorf("%q %v", body, err)
				}
				return c.fault
			}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if c.status == 0 && !c.fault.Cut {
				ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second) // within which the cloud has been asked
				defer cancel()
			}
			url := w.Endpoint("smn") + "/v2/" + w.ProjectID() + "/notifications/topics"
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(`{"name":"a"}`)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Auth-Token", w.token)
			status, err := exchange(r, c.fault)
			if c.status == 0 && err == nil || c.status != status && c.status != 0 {
				t.Errorf("status %d, %v; want %d", status, err, c.status)
			}
			if applied := len(w.Topics()) == 1; applied != c.applied {
				t.Errorf("applied: %v", applied)
			}
			if w.Count("smn", "CreateTopic") != 1 || w.Count("smn", "") != 1 {
				t.Error(w.Requests())
			}
		})
	}
}

func exchange(r *http.Request, fault *Fault) (int, error) {
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && fault != nil && (res.Header.Get("Retry-After") != fault.Header.Get("Retry-After") || fault.Body != "" && string(body) != fault.Body) {
		err = errors.New("header or body of the fault is missing")
		return 0, err
	}
	return res.StatusCode, err
}

func TestRequestsAreLogged(t *testing.T) {
	w := start(t, Options{})
	w.ResetRequests()
	w.newTopic("a")
	w.call(404, "rds", "GET", "/nonsense", nil)
	got := w.Requests()
	if len(got) != 2 || got[0].Operation != "CreateTopic" || got[0].Status != 201 || got[1].Service != "unknown" || got[1].Status != 404 {
		t.Errorf("%+v", got)
	}
}
