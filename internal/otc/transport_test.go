// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{service: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
		c := connectTo(t, f, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		begin := time.Now()
		_, err := c.Topics(ctx)
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
			t.Errorf("err = %v, want the caller's cancellation, which says nothing about the cloud", err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("ended after %s", took)
		}
		if _, n := f.counts(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestSilentCloudIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{service: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
		c := connectTo(t, f, Options{})
		begin := time.Now()
		_, err := c.Topics(t.Context())
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no answer within 10s") {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(begin); took < attempts*attemptTimeout || took > attempts*attemptTimeout+10*time.Second {
			t.Errorf("gave up after %s", took)
		}
		begin = time.Now()
		if _, err = c.CreateRule(t.Context(), Rule{Name: "x"}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(begin); took != attemptTimeout {
			t.Errorf("a POST that may have been carried out was repeated: %s", took)
		}
	})
}

// The SDK closes each connection, and never closes the reply of a DELETE that has a body.
func TestConnectionsAreKeptAndNothingLeaks(t *testing.T) {
	f := &fake{}
	f.service = func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			reply(w, 200, `{"topics":[]}`)
			return
		}
		reply(w, 200, `{"request_id":"1"}`)
	}
	server := httptest.NewUnstartedServer(f)
	var opened atomic.Int64
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := Connect(t.Context(), Options{Env: lookUp(fakeEnv(server.URL)), Rate: 10000})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 30 {
		if err := c.DeleteTopic(t.Context(), "urn:smn:eu-de:1:t"); err != nil {
			t.Fatal(err)
		}
		if err := c.Unsubscribe(t.Context(), "urn:smn:eu-de:1:t:s"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Topics(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for 91 requests, want 1", n)
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

func TestRedirectIsAnErrorAndTakesNoTokenAlong(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		f := &fake{service: func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "cloud" {
				t.Errorf("%d: followed to %s with token %q", status, r.Host, r.Header.Get("X-Auth-Token"))
			}
			http.Redirect(w, r, "http://elsewhere/", status)
		}}
		c := connectTo(t, f, Options{})
		for name, do := range map[string]func(*Cloud, context.Context) error{"GET": listTopics, "DELETE": deleteTopic} {
			var e *Error
			if err := do(c, t.Context()); !errors.As(err, &e) || e.Status != status {
				t.Errorf("%s, %d: %v", name, status, err)
			}
		}
	}
}

// counting counts replies that are not closed yet.
type counting struct {
	http.RoundTripper
	open *atomic.Int64
}

type countedBody struct {
	io.ReadCloser
	open *atomic.Int64
}

func (b countedBody) Close() error {
	b.open.Add(-1)
	return b.ReadCloser.Close()
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		c.open.Add(1)
		resp.Body = countedBody{resp.Body, c.open}
	}
	return resp, err
}

func TestEveryReplyIsClosed(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"a success":             answer(200, `{"topics":[]}`),
		"a refusal":             answer(404, `{"code":"SMN.0006"}`),
		"no JSON":               answer(200, `<html>`),
		"one too large":         answer(200, strings.Repeat(" ", replyLimit+10)),
		"a success of a delete": answer(200, `{"request_id":"1"}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connectTo(t, &fake{service: handle}, Options{})
				var open atomic.Int64
				c.transport.base = counting{c.transport.base, &open}
				_ = listTopics(c, t.Context())
				_ = deleteTopic(c, t.Context())
				if n := open.Load(); n != 0 {
					t.Errorf("%d replies are not closed", n)
				}
			})
		})
	}
}

// The SDK's own repeats are off, and set before it would write them itself.
func TestClientOfACallIsPreset(t *testing.T) {
	c := connectTo(t, &fake{}, Options{})
	p := c.client(t.Context(), opListTopics)
	if p.MaxBackoffRetries == nil || *p.MaxBackoffRetries != 0 || p.BackoffRetryTimeout == nil || p.ReauthFunc != nil {
		t.Errorf("%+v", p.ProviderClient)
	}
}

func TestReplyThatIsNoneIsAnError(t *testing.T) {
	for name, body := range map[string]string{
		"empty":            "",
		"another document": `{}`,
		"a page of HTML":   "<html>",
		"too large":        `{"topics":[` + strings.Repeat(" ", replyLimit) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connectTo(t, &fake{service: answer(200, body)}, Options{})
				if got, err := c.Topics(t.Context()); !errors.Is(err, ErrUnavailable) {
					t.Errorf("Topics = %v, %v: no answer must not read as no topics", got, err)
				}
			})
		})
	}
}

func TestRateIsPerService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{service: func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/topics") {
				reply(w, 200, `{"topics":[]}`)
				return
			}
			reply(w, 200, `{"metric_alarms":[]}`)
		}}
		c := connectTo(t, f, Options{Rate: 2})
		begin := time.Now()
		for range 12 { // a burst of 2, then 2 per second
			if _, err := c.Topics(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("12 requests at 2 per second took %s", took)
		}
		begin = time.Now()
		if _, err := c.Rules(t.Context()); err != nil || time.Since(begin) != 0 {
			t.Errorf("another service waited %s, %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Topics(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want the deadline", err)
		}
	})
}

// What many wait for has no deadline of its own beyond that of its calls: the slower we may ask, the longer it takes.
func TestALowRateIsNoFailure(t *testing.T) {
	for name, calls := range map[string][]func(*Cloud, context.Context) error{
		"flavors": {
			func(c *Cloud, ctx context.Context) error { _, err := c.Flavors(ctx, "MySQL", "8.0"); return err },
			func(c *Cloud, ctx context.Context) error { _, err := c.Flavors(ctx, "MySQL", "5.7"); return err },
			func(c *Cloud, ctx context.Context) error { _, err := c.Flavors(ctx, "PostgreSQL", "16"); return err },
		},
		"a login": {listTopics}, // another one was a moment ago
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				f.service = func(w http.ResponseWriter, r *http.Request) {
					if !f.authentic(r) {
						reply(w, 401, `{}`)
						return
					}
					reply(w, 200, `{"topics":[],"flavors":[]}`)
				}
				c := connectTo(t, f, Options{Rate: .02})
				if name == "a login" {
					f.expire()
				}
				var all sync.WaitGroup
				for _, call := range calls {
					all.Go(func() {
						if err := call(c, t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		status := 503
		c := connectTo(t, &fake{service: func(w http.ResponseWriter, _ *http.Request) {
			reply(w, status, `{"topics":[]}`)
			status = 200
		}}, Options{Registerer: registry})
		if _, err := c.Topics(t.Context()); err != nil {
			t.Fatal(err)
		}
		connectTo(t, &fake{}, Options{Registerer: registry}) // connecting twice is no error and keeps counting
		count := func(service, op, code string) float64 {
			return testutil.ToFloat64(c.transport.requests.WithLabelValues(service, op, code))
		}
		if a, b, l := count("smn", "ListTopics", "503"), count("smn", "ListTopics", "200"), count("iam", "Login", "201"); a != 1 || b != 1 || l != 2 {
			t.Errorf("503: %v, 200: %v, logins: %v", a, b, l)
		}
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
	})
}

func TestCodeLabelIsOfAClosedSet(t *testing.T) {
	seen := map[string]bool{}
	for status := -1; status < 2000; status++ {
		seen[codeLabel(status)] = true
	}
	if len(seen) > 25 {
		t.Errorf("%d label values", len(seen))
	}
}

func TestNoSecretIsInAnErrorOrLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		f := &fake{service: func(w http.ResponseWriter, r *http.Request) {
			reply(w, 500, `{"code":"SMN.1","message":"bad `+r.Header.Get("X-Auth-Token")+` `+fakePassword+`\nsecond line"}`)
		}}
		c := connectTo(t, f, Options{Log: zap.New(core)})
		_, err := c.Topics(t.Context())
		told := err.Error()
		for _, entry := range logs.All() {
			told += entry.Message
			for _, field := range entry.Context {
				told += field.String
			}
		}
		if strings.Contains(told, "nobody-may-see") || strings.Contains(told, "\n") {
			t.Errorf("told: %s", told)
		}
		if logs.Len() == 0 {
			t.Error("repeats are not logged")
		}
	})
}

func TestManyGoroutinesShareOneCloud(t *testing.T) {
	f := &fake{}
	f.service = func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !f.authentic(r):
			reply(w, 401, `{}`)
		case r.Method == http.MethodPost:
			reply(w, 201, `{"alarm_id":"al1"}`)
		default:
			reply(w, 200, `{"topics":[],"instances":[],"total_count":0}`)
		}
	}
	c := connectTo(t, f, Options{Rate: 1e6})
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			if i == 10 {
				f.expire()
			}
			for _, do := range []func(*Cloud, context.Context) error{listTopics, createRule, listInstances} {
				if err := do(c, t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func listTopics(c *Cloud, ctx context.Context) error { _, err := c.Topics(ctx); return err }

func listInstances(c *Cloud, ctx context.Context) error {
	_, err := c.Instances(ctx)
	return err
}

func enableRule(c *Cloud, ctx context.Context) error { return c.EnableRule(ctx, "al1", true) }

func deleteTopic(c *Cloud, ctx context.Context) error {
	return c.DeleteTopic(ctx, "urn:smn:eu-de:1:t")
}

func createRule(c *Cloud, ctx context.Context) error {
	_, err := c.CreateRule(ctx, Rule{Name: "r"})
	return err
}

func queryData(c *Cloud, ctx context.Context) error {
	_, err := c.Datapoints(ctx, []Series{{"m", "d", "v"}}, 1, time.Unix(1, 0), time.Unix(2, 0))
	return err
}
