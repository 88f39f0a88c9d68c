// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

const spareBurst = 10 // calls that somebody may make at once who looks for the first time: one plan

// Options are the cloud, the credentials and the rate of requests.
type Options struct {
	Env        func(string) string   // looks up OS_*; default os.Getenv
	Endpoints  map[string]string     // "smn", "ces", "rds" → base URL; the catalogue's path is kept
	Rate       float64               // requests per second to each cloud service; default 5
	Transport  http.RoundTripper     // carries the requests; default: one of our own, with the account's trust
	Registerer prometheus.Registerer // for rds_autopilot_cloud_requests_total; nil registers nothing
	Log        *zap.Logger           // default: none
	Now        func() time.Time      // default time.Now
	// Patient makes a cloud that cannot be reached no error: the next call tries to log in again.
	Patient bool
	// Observe gets every answer; nil is nobody.
	Observe func(Answer)
}

// Answer is what the cloud answered to one request.
type Answer struct {
	Service, Operation string
	Status             int       // HTTP; 0: none
	Code               string    // the service's own, also where the status is a success
	Date               time.Time // by the cloud's clock; zero where it does not say
}

// Cloud is one project in one region. It is safe for concurrent use; every method ends with its context.
type Cloud struct {
	transport *transport
	session   *session
	flavors   *flavorCache
	account   account // as it was at the start
}

// Connect authenticates and finds the services. The error is one line: ErrCredentials when the cloud refused the
// credentials, ErrUnavailable when it could not be asked.
func Connect(ctx context.Context, o Options) (*Cloud, error) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Rate <= 0 {
		o.Rate = 5
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	acct, err := findAccount(o.Env)
	if err != nil {
		return nil, err
	}
	if o.Transport != nil {
		return connect(ctx, o, acct, o.Transport)
	}
	base, err := acct.httpTransport(o.Log)
	if err != nil {
		return nil, err
	}
	return connect(ctx, o, acct, base)
}

func connect(ctx context.Context, o Options, acct account, base http.RoundTripper) (*Cloud, error) {
	requests, err := newRequestCounter(o.Registerer)
	if err != nil {
		return nil, err
	}
	up, err := newUpGauge(o.Registerer)
	if err != nil {
		return nil, err
	}
	t := newTransport(base, o, requests)
	t.session = &session{
		find: func() (account, error) { return findAccount(o.Env) }, now: o.Now, log: o.Log, up: up, known: acct.secrets(),
		authenticate: func(ctx context.Context, acct account) (*login, error) { return logIn(ctx, t, acct, o.Endpoints) },
	}
	c := &Cloud{transport: t, session: t.session, flavors: newFlavorCache(o.Now), account: acct}
	if err := c.session.logIn(ctx); err != nil && (!o.Patient || !isUnreachable(err) || acct.region == "") {
		return nil, err
	}
	return c, nil
}

// isUnreachable reports whether the cloud may answer later. One with a wrong certificate will not.
func isUnreachable(err error) bool {
	_, wrong := errors.AsType[*tls.CertificateVerificationError](err)
	return errors.Is(err, ErrUnavailable) && !wrong
}

// Reach logs in, if that was not possible yet, and tries until it is or ctx ends.
func (c *Cloud) Reach(ctx context.Context, every time.Duration) {
	for {
		_, err := c.session.get(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		c.transport.log.Warn("no way into the cloud yet", zap.Error(err))
		if sleep(ctx, every) != nil {
			return
		}
	}
}

// Endpoint is where a service (smn, ces, rds) was found, and how; empty as long as the cloud was never reached.
func (c *Cloud) Endpoint(of string) (base, how string) {
	l := c.session.current()
	if l == nil {
		return "", ""
	}
	return l.bases[service(of)], l.found[service(of)]
}

// ProjectID is the project all methods work in; empty as long as the cloud was never reached, unless OS_PROJECT_ID is set.
func (c *Cloud) ProjectID() string {
	if l := c.session.current(); l != nil {
		return l.projectID
	}
	return c.account.projectID
}

// Region is the region of the services, such as eu-de.
func (c *Cloud) Region() string {
	if l := c.session.current(); l != nil {
		return l.region
	}
	return c.account.region
}

// Sparing is the same cloud for somebody who only looks. Its calls wait for a tenth of one service's rate before they take a
// place beside the others, so that decisions have the rest.
func (c *Cloud) Sparing() *Cloud {
	t, sparing := *c.transport, *c
	t.spare = rate.NewLimiter(t.rate/10, spareBurst)
	sparing.transport = &t
	return &sparing
}

// client is for one call only: the SDK takes no context, so each call gets a client whose transport carries it. What is
// shared (connections, token, rates) is in the transport; the client itself is never used by two goroutines.
func (c *Cloud) client(ctx context.Context, op operation) *golangsdk.ServiceClient {
	p := &golangsdk.ProviderClient{}
	base := "http://cloud.invalid/" // nothing is sent there
	l, err := c.session.get(ctx)
	if err == nil {
		p.ProjectID, p.AKSKAuthOptions, base = l.projectID, l.aksk(), l.bases[c.transport.ops[op].service]
	}
	c.transport.bind(call{t: c.transport, ctx: ctx, op: op, key: p.AKSKAuthOptions.AccessKey, err: err}, p)
	return &golangsdk.ServiceClient{ProviderClient: p, Endpoint: base, ResourceBase: base}
}

// doRequest is for what the SDK's packages lack or get wrong. Any success is one: the services answer 200, 201, 202 or 204.
func (c *Cloud) doRequest(ctx context.Context, op operation, method, path string, body, reply any) error {
	client := c.client(ctx, op)
	resp, err := client.Request(method, client.ServiceURL(path), &golangsdk.RequestOpts{
		JSONBody: body, JSONResponse: reply,
		OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	})
	if err != nil {
		return c.transport.wrapError(op, err)
	}
	return resp.Body.Close()
}

// bind makes p's requests those of a call. The SDK's own repeats are preset, so that it never writes them.
func (t *transport) bind(c call, p *golangsdk.ProviderClient) {
	p.HTTPClient = http.Client{Transport: c}
	p.MaxBackoffRetries = new(int)
	p.BackoffRetryTimeout = new(time.Duration)
	p.UserAgent.Prepend("rds-autopilot")
}

// checkID refuses what would make another URL of the one meant: the SDK joins paths without escaping.
func checkID(what, id string) error {
	ok := id != "" && len(id) <= 512
	for i, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case i > 0 && strings.ContainsRune("_-:.", r):
		default:
			ok = false
		}
	}
	if !ok {
		return errors.New("not a valid " + what + ": " + cut(id, 80))
	}
	return nil
}
