// SPDX-License-Identifier: Apache-2.0

// Package otc is the client of Open Telekom Cloud's RDS, Cloud Eye (CES) and SMN. It uses the vendor's SDK, and one
// HTTP transport that works around the SDK's faults: no context, no deadline, endless retries, leaking replies.
//
// The package returns the domain's types. All databases share its lists, and its requests for datapoints, so that a
// storm of alarms costs as many requests as one alarm. It does not know Kubernetes clients or the policy.
package otc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/internal/shorten"
)

// spareBurst is how many requests a sparing Cloud may send at once: the measurements of five databases.
const spareBurst = 10

// validID matches ids, URNs and names of engines.
var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// Options configure Connect. All are required unless their comment gives a meaning to the zero value.
type Options struct {
	Env        func(string) string   // looks up OS_*
	Endpoints  map[string]string     // "smn", "ces", "rds" → base URL; the catalogue's path is kept; nil replaces none
	Rate       float64               // requests per second to each cloud service
	Transport  http.RoundTripper     // sends the requests; nil means a pool that trusts the account's CA file
	Registerer prometheus.Registerer // for rds_autopilot_cloud_requests_total; nil registers nothing
	Log        *zap.Logger
	Now        func() time.Time
	// Patient lets Connect succeed while the cloud is unreachable or refuses the credentials. Each call then tries to log
	// in. It needs a region that is known without a login.
	Patient bool
}

// Cloud is a client for one project in one region. It is safe for concurrent use. Every method returns when its context
// ends. Methods with an argument notBefore share their reads among all callers.
type Cloud struct {
	transport *transport
	session   *session
	account   account // as of the start
	now       func() time.Time
	lists
}

// Connect authenticates and finds the services. Its error is one line. It wraps ErrCredentials if the cloud refused the
// credentials, and ErrUnavailable if the cloud did not answer.
func Connect(ctx context.Context, o Options) (*Cloud, error) {
	acct, err := findAccount(o.Env)
	if err != nil {
		return nil, err
	}
	base := o.Transport
	if base == nil {
		if base, err = acct.httpTransport(o.Log); err != nil {
			return nil, err
		}
	}
	t := newTransport(base, o)
	t.session = &session{
		find: func() (account, error) { return findAccount(o.Env) }, now: o.Now, log: o.Log, up: newUpGauge(o.Registerer), known: acct.secrets(),
		authenticate: func(ctx context.Context, acct account) (*login, error) { return logIn(ctx, t, acct, o.Endpoints) },
	}
	t.session.logins = t.session.newLogins()
	c := &Cloud{transport: t, session: t.session, account: acct, now: o.Now}
	c.share()
	for _, raw := range append(slices.Collect(maps.Values(o.Endpoints)), acct.authURL) {
		if u, err := url.Parse(raw); err == nil && CrossesNetworkUnencrypted(u) {
			o.Log.Warn("http to the cloud: passwords and tokens cross the network unencrypted", zap.String("host", u.Host))
		}
	}
	if o.Patient && acct.region == "" { // known before a request, so that no restart repeats a refused login
		return nil, errors.New("cloud credentials: the region is unknown: set OS_REGION_NAME, or a project name that begins with it")
	}
	err = c.session.logIn(ctx)
	_, isWrong := errors.AsType[*tls.CertificateVerificationError](err) // a certificate that is wrong stays wrong
	mayChange := errors.Is(err, ErrCredentials) || errors.Is(err, ErrUnavailable) && !isWrong
	if err != nil && (!o.Patient || !mayChange) {
		return nil, err
	}
	return c, nil
}

// Reach tries to log in until it succeeds or ctx ends. It returns at once if a login has succeeded before. It reads the
// credentials each time, and sends refused ones again only after a pause.
func (c *Cloud) Reach(ctx context.Context, every time.Duration) {
	for {
		_, err := c.session.get(ctx, "")
		if err == nil || ctx.Err() != nil {
			return
		}
		if !errors.Is(err, ErrCredentials) { // the session has logged a refusal
			c.transport.log.Warn("cannot log in to the cloud yet", zap.Error(err))
		}
		if sleep(ctx, every) != nil {
			return
		}
	}
}

// login returns the last login. Before the first one, it has only what the account says.
func (c *Cloud) login() *login {
	return cmp.Or(c.session.current(), &login{projectID: c.account.projectID, region: c.account.region})
}

// ProjectID returns the id of the project. Before the first login it is OS_PROJECT_ID, which may be empty.
func (c *Cloud) ProjectID() string { return c.login().projectID }

// Region returns the region of the services, such as eu-de.
func (c *Cloud) Region() string { return c.login().region }

// SMNHost returns the host of SMN's API, with its port unless it is 443 of https; empty before the first login.
func (c *Cloud) SMNHost() string {
	u, err := url.Parse(c.login().bases[serviceSMN])
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https" && u.Port() == "443":
		return u.Hostname()
	}
	return u.Host
}

// Sparing returns a Cloud for requests that only inform people. It shares the login and the rate of c, but uses at
// most a tenth of one service's rate, so that decisions have the rest. It has shared reads of its own.
func (c *Cloud) Sparing() *Cloud {
	t, sparing := *c.transport, *c
	t.spare = rate.NewLimiter(t.rate/10, spareBurst)
	sparing.transport = &t
	sparing.share()
	return &sparing
}

// client returns an SDK client for one call. The SDK takes no context, so the transport of the client carries it. The
// transport also shares connections, token and rates. The SDK's client is not safe for concurrent use.
//
// ids are the parts of the request's URL that come from outside. The SDK does not escape them, so an id that contains
// "/" could address another resource. The call fails with errInvalidID, and sends nothing, if checkIDs refuses one.
func (c *Cloud) client(ctx context.Context, op operation, ids ...string) *golangsdk.ServiceClient {
	return c.confirmed(ctx, nil, op, ids...)
}

// confirmed is client for a request that changes a database. It calls confirm right before each time that the request is
// sent. An error from before the first time wraps autopilot.ErrNotRequested.
func (c *Cloud) confirmed(ctx context.Context, confirm func(context.Context) error, op operation,
	ids ...string) *golangsdk.ServiceClient {
	p := &golangsdk.ProviderClient{}
	base := "http://cloud.invalid/" // never used: without a login the call fails
	err := checkIDs(ids)
	var l *login
	if err == nil {
		l, err = c.session.get(ctx, "")
	}
	if err == nil {
		p.ProjectID, p.AKSKAuthOptions, base = l.projectID, l.aksk(), l.bases[c.transport.ops[op].service]
	}
	c.transport.bind(call{t: c.transport, ctx: ctx, confirm: confirm, op: op, key: p.AKSKAuthOptions.AccessKey, err: err}, p)
	return &golangsdk.ServiceClient{ProviderClient: p, Endpoint: base, ResourceBase: base}
}

// doRequest sends a request that the SDK's packages lack or get wrong. It accepts every successful status, because the
// services do not agree on one. ids are as in client.
func (c *Cloud) doRequest(ctx context.Context, op operation, method, path string, body, reply any,
	ids ...string) error {
	client := c.client(ctx, op, ids...)
	resp, err := client.Request(method, client.ServiceURL(path), &golangsdk.RequestOpts{
		JSONBody: body, JSONResponse: reply,
		OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	})
	if err != nil {
		return c.transport.wrapError(op, err)
	}
	return resp.Body.Close()
}

// bind sends the requests of p by the transport of a call. It presets the SDK's own retries to none, because the SDK
// would otherwise set them later without a lock.
func (t *transport) bind(c call, p *golangsdk.ProviderClient) {
	p.HTTPClient = http.Client{Transport: c}
	p.MaxBackoffRetries = new(int)
	p.BackoffRetryTimeout = new(time.Duration)
	p.UserAgent.Prepend("rds-autopilot")
}

func checkIDs(ids []string) error {
	for _, id := range ids {
		if len(id) > 512 || !validID.MatchString(id) {
			return fmt.Errorf("%w: %s", errInvalidID, shorten.To(id, 80))
		}
	}
	return nil
}

// CrossesNetworkUnencrypted reports whether requests to u use http, and not to a loopback address.
func CrossesNetworkUnencrypted(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
