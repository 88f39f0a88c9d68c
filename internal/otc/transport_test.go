// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
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

func TestCallReturnsUnavailableWhenCloudIsSilent(t *testing.T) {
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
			t.Errorf("a POST without an answer was repeated: %s", took)
		}
	})
}

// The SDK closes each connection, and never closes the reply of a DELETE that has a body.
func TestConnectionIsReused(t *testing.T) {
	server := httptest.NewUnstartedServer(&fake{service: answer(200, `{"topics":[]}`)})
	var opened atomic.Int64
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := Connect(t.Context(), Options{Env: lookUp(fakeEnv(server.URL)), Rate: 10000, Log: zap.NewNop(), Now: time.Now})
	must(t, err)
	for range 10 {
		must(t, errors.Join(deleteTopic(c, t.Context()), listTopics(c, t.Context())))
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for 21 requests, want 1", n)
	}
}

func TestRedirectIsAnErrorAndIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 307} {
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

func TestRateLimitIsPerService(t *testing.T) {
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
			must(t, listTopics(c, t.Context()))
		}
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("12 requests at 2 per second took %s", took)
		}
		begin = time.Now()
		if _, err := c.ListRules(t.Context()); err != nil || time.Since(begin) != 0 {
			t.Errorf("another service waited %s, %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Topics(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want the deadline", err)
		}
	})
}

func TestRequestsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 503
		c := connectTo(t, &fake{service: func(w http.ResponseWriter, _ *http.Request) {
			reply(w, status, `{"topics":[]}`)
			status = 200
		}}, Options{})
		must(t, listTopics(c, t.Context()))
		count := func(service, op, code string) float64 {
			return testutil.ToFloat64(c.transport.requests.WithLabelValues(service, op, code))
		}
		if a, b, l := count("smn", "ListTopics", "503"), count("smn", "ListTopics", "200"), count("iam", "Login", "201"); a != 1 || b != 1 || l != 1 {
			t.Errorf("503: %v, 200: %v, logins: %v", a, b, l)
		}
	})
}

func TestNoSecretIsInAnErrorOrLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		f := &fake{service: func(w http.ResponseWriter, r *http.Request) {
			reply(w, 500, `{"code":"SMN.1","message":"bad `+r.Header.Get("X-Auth-Token")+` `+fakePassword+`\nsecond line"}`)
		}}
		c := connectTo(t, f, Options{Log: zap.New(core)})
		_, err := c.Topics(t.Context())
		text := err.Error()
		for _, entry := range logs.All() {
			text += entry.Message
			for _, field := range entry.Context {
				text += field.String
			}
		}
		if strings.Contains(text, "secret-") || strings.Contains(text, "\n") {
			t.Errorf("a secret or a line feed in %s", text)
		}
		if logs.Len() == 0 {
			t.Error("repeats are not logged")
		}
	})
}

func listTopics(c *Cloud, ctx context.Context) error { _, err := c.Topics(ctx); return err }

func enableRule(c *Cloud, ctx context.Context) error { return c.EnableRule(ctx, "al1", true) }

func deleteTopic(c *Cloud, ctx context.Context) error {
	return c.DeleteTopic(ctx, "urn:smn:eu-de:1:t")
}

func createRule(c *Cloud, ctx context.Context) error {
	_, err := c.CreateRule(ctx, Rule{Name: "r"})
	return err
}

func queryData(c *Cloud, ctx context.Context) error {
	_, err := c.queryPoints(ctx, []Series{{"m", "d", "v"}}, 1, time.Unix(1, 0), time.Unix(2, 0))
	return err
}

// Readers of the status page, however many, must leave nine tenths of the rate to decisions.
func TestSparingCloudLeavesRateToDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Int32
		f := &fake{service: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `{"topics":[]}`) }}
		c := connectTo(t, f, Options{Rate: 5})
		sparing := c.Sparing()
		time.Sleep(time.Minute) // so that both limits are unused
		for range 100 {
			go func() {
				if _, err := sparing.Topics(t.Context()); err == nil {
					answers.Add(1)
				}
			}()
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := answers.Load(); n != spareBurst+10 {
			t.Errorf("%d answers in 20 s", n)
		}
		begin := time.Now()
		for range 100 {
			must(t, listTopics(c, t.Context()))
		}
		if took := time.Since(begin); took > 23*time.Second { // alone: 19 s
			t.Errorf("100 calls for decisions took %s", took)
		}
	})
}

func TestRetryDependsOnMethodAndStatus(t *testing.T) {
	tests := map[string]struct {
		do     func(*Cloud, context.Context) error
		status int
		header string // Retry-After
		want   int    // requests
		least  time.Duration
		most   time.Duration
	}{
		"a GET on 503":                             {listTopics, 503, "", 4, time.Second, 10 * time.Second},
		"a GET on 429 with Retry-After":            {listTopics, 429, "15", 4, 45 * time.Second, 46 * time.Second},
		"not a GET on 429 with a long Retry-After": {listTopics, 429, "3600", 1, 0, 0},
		"not a GET on 404":                         {listTopics, 404, "", 1, 0, 0},
		"a PUT on 502":                             {enableRule, 502, "", 4, time.Second, 10 * time.Second},
		"a DELETE on 503":                          {deleteTopic, 503, "", 4, time.Second, 10 * time.Second},
		"not a POST on 500":                        {createRule, 500, "", 1, 0, 0},
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

func TestExpiredTokenIsRenewedOnceForAllCallers(t *testing.T) {
	f := &fake{}
	f.service = func(w http.ResponseWriter, r *http.Request) {
		if !f.authentic(r) {
			reply(w, 401, `{"error_code":"APIGW.0307","error_msg":"token expired"}`)
			return
		}
		reply(w, 200, `{"topics":[]}`)
	}
	c := connectTo(t, f, Options{Rate: 10000})
	f.expire()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := c.Topics(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if logins, _ := f.counts(); logins != 2 {
		t.Errorf("%d logins, want the first and one more", logins)
	}
}

func TestCallEndsWhenServiceNeverAcceptsToken(t *testing.T) {
	f := &fake{service: answer(401, `{"error_msg":"no"}`)}
	c := connectTo(t, f, Options{})
	_, err := c.Topics(t.Context())
	if !errors.Is(err, ErrCredentials) {
		t.Errorf("err = %v", err)
	}
	if logins, requests := f.counts(); logins != 2 || requests != 2 {
		t.Errorf("%d logins, %d requests; want one renewal and one repeat", logins, requests)
	}
}

// IAM locks an account after a few refused logins.
func TestRefusedCredentialsAreTriedOnceInFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.service = func(w http.ResponseWriter, r *http.Request) {
			if f.authentic(r) {
				reply(w, 200, `{"topics":[]}`)
				return
			}
			reply(w, 401, `{}`)
		}
		c := connectTo(t, f, Options{})
		f.expire()
		f.refuse = true
		for range 20 {
			_, err := c.Topics(t.Context())
			if !errors.Is(err, ErrCredentials) {
				t.Fatalf("err = %v", err)
			}
			if strings.Contains(err.Error(), fakePassword) {
				t.Fatalf("the password is in the error: %v", err)
			}
		}
		if logins, _ := f.counts(); logins != 2 {
			t.Errorf("%d logins, want the first and one refused", logins)
		}
		for begin := time.Now(); time.Since(begin) < 15*time.Minute-refusedPause; time.Sleep(20 * time.Second) {
			_, _ = c.Topics(t.Context())
		}
		if logins, _ := f.counts(); logins > 3 { // two replicas try, and five failures in 15 minutes lock the account
			t.Errorf("%d logins refused within 15 minutes", logins-1)
		}
		f.refuse = false
		<-time.After(refusedMost)
		if _, err := c.Topics(t.Context()); err != nil {
			t.Errorf("after the pause: %v", err)
		}
	})
}

func TestFindServicesReturnsTheBaseURLOfEachService(t *testing.T) {
	const id = fakeProject
	const ours = "smnv2=https://smn.eu-de.otc.t-systems.com:443/v2/" + id + " rdsv3=https://rds.eu-de.otc.t-systems.com/rds/v3/" + id
	const full = ours + " cesv1=https://ces.eu-de.otc.t-systems.com/V1.0/" + id
	const ces = "https://ces.example/V1.0/" + id + "/"
	tests := map[string]struct {
		catalogue string // type=URL
		override  string // service=URL
		service   service
		want      string
		err       string
	}{
		"SMN, the catalogue's port kept":       {full, "", serviceSMN, "https://smn.eu-de.otc.t-systems.com:443/v2/" + id + "/notifications/", ""},
		"RDS, the catalogue's path kept":       {full, "", serviceRDS, "https://rds.eu-de.otc.t-systems.com/rds/v3/" + id + "/", ""},
		"Cloud Eye by cesv1":                   {full, "", serviceCES, "https://ces.eu-de.otc.t-systems.com/V1.0/" + id + "/", ""},
		"Cloud Eye by ces, without a path":     {ours + " ces=https://ces.example", "", serviceCES, ces, ""},
		"Cloud Eye derived from block storage": {ours + " volumev2=https://evs.eu-de.otc.t-systems.com/v2/" + id, "", serviceCES, "https://ces.eu-de.otc.t-systems.com/V1.0/" + id + "/", ""},
		"no Cloud Eye at all":                  {ours, "", serviceCES, "", "--endpoint ces=URL"},
		"given, the catalogue's path kept":     {full, "rds=http://localhost:1234", serviceRDS, "http://localhost:1234/rds/v3/" + id + "/", ""},
		"given, and not in the catalogue":      {ours, "ces=https://ces.example", serviceCES, ces, ""},
		"given without a scheme":               {full, "smn=smn.example", serviceSMN, "", "endpoint smn: not an http(s) URL"},
		"no SMN":                               {strings.Replace(full, "smnv2=", "other=", 1), "", serviceSMN, "", "--endpoint smn=URL"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := &golangsdk.ProviderClient{EndpointLocator: func(o golangsdk.EndpointOpts) (string, error) {
				for entry := range strings.FieldsSeq(tt.catalogue) {
					if kind, url, _ := strings.Cut(entry, "="); kind == o.Type {
						return url, nil
					}
				}
				return "", errors.New("not in the catalogue")
			}}
			overrides := map[string]string{}
			if name, url, given := strings.Cut(tt.override, "="); given {
				overrides[name] = url
			}
			bases, err := findServices(p, id, "eu-de", overrides)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) || bases[tt.service] != tt.want {
				t.Errorf("%s, %v; want %s, %q", bases[tt.service], err, tt.want, tt.err)
			}
		})
	}
}
