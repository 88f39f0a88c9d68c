// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryDependsOnMethodAndStatus(t *testing.T) {
	tests := map[string]struct {
		do     func(*Cloud, context.Context) error
		status int
		header string // Retry-After
		want   int    // requests
		least  time.Duration
		most   time.Duration
	}{
		"a GET on 500":                             {listTopics, 500, "", 4, time.Second, 10 * time.Second},
		"a GET on 503":                             {listTopics, 503, "", 4, time.Second, 10 * time.Second},
		"a GET on 429":                             {listTopics, 429, "", 4, time.Second, 10 * time.Second},
		"a GET on 429 with a date":                 {listTopics, 429, "Sat, 01 Jan 2000 00:00:15 GMT", 4, 15 * time.Second, 25 * time.Second},
		"a GET on 429 with Retry-After":            {listTopics, 429, "15", 4, 45 * time.Second, 46 * time.Second},
		"not a GET on 429 with a long Retry-After": {listTopics, 429, "3600", 1, 0, 0},
		"not a GET on 403":                         {listTopics, 403, "", 1, 0, 0},
		"not a GET on 404":                         {listTopics, 404, "", 1, 0, 0},
		"a PUT on 502":                             {enableRule, 502, "", 4, time.Second, 10 * time.Second},
		"a DELETE on 503":                          {deleteTopic, 503, "", 4, time.Second, 10 * time.Second},
		"not a POST on 500":                        {createRule, 500, "", 1, 0, 0},
		"not a POST on 503":                        {createRule, 503, "", 1, 0, 0},
		"a POST on 429, which changed nothing":     {createRule, 429, "", 4, time.Second, 10 * time.Second},
		"a POST that only reads":                   {queryData, 504, "", 4, time.Second, 10 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{service: func(w http.ResponseWriter, _ *http.Request) {
					if tt.header != "" {
						w.Header().Set("Retry-After", tt.header)
					}
					reply(w, tt.status, `{}`)
				}}
				c := connectTo(t, f, Options{})
				begin := time.Now()
				err := tt.do(c, t.Context())
				took := time.Since(begin)
				var e *Error
				if !errors.As(err, &e) || (e.Status != tt.status) {
					t.Fatalf("err = %v, want status %d", err, tt.status)
				}
				if _, n := f.counts(); n != tt.want {
					t.Errorf("%d requests, want %d", n, tt.want)
				}
				if took < tt.least || took > tt.most {
					t.Errorf("took %s, want %s to %s", took, tt.least, tt.most)
				}
			})
		})
	}
}
