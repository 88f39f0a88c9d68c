package otc

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Options say which cloud, as whom and how fast.
type Options struct {
	Env        func(string) string   // looks up OS_*; default os.Getenv
	Endpoints  map[string]string     // "smn", "ces", "rds" → base URL; the catalogue's path is kept
	Rate       float64               // requests per second to each cloud service; default 5
	Transport  http.RoundTripper     // carries the requests; default: one of our own, with the account's trust
	Registerer prometheus.Registerer // for rds_autopilot_cloud_requests_total; nil registers nothing
	Log        *zap.Logger           // default: none
	Now        func() time.Time      // default time.Now
}

// Cloud is one project in one region. It is safe for concurrent use; every method ends with its context.
type Cloud struct {
	transport *transport
	flavors   *flavorCache
	projectID string
	region    string
	bases     map[service]string // service → base URL of its resources, ends with "/"
	aksk      golangsdk.AKSKAuthOptions
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
	who, err := findAccount(o.Env)
	if err != nil {
		return nil, err
	}
	if o.Transport != nil {
		return connect(ctx, o, who, o.Transport)
	}
	base, err := who.httpTransport(o.Log)
	if err != nil {
		return nil, err
	}
	return connect(ctx, o, who, base)
}

func connect(ctx context.Context, o Options, who account, base http.RoundTripper) (*Cloud, error) {
	requests, err := newRequestCounter(o.Registerer)
	if err != nil {
		return nil, err
	}
	t := newTransport(base, o, requests, who.secrets())
	p, err := login(ctx, t, who)
	if err != nil {
		return nil, err
	}
	c := &Cloud{transport: t, flavors: newFlavorCache(o.Now), projectID: p.ProjectID, region: who.region}
	if c.region == "" {
		c.region = p.RegionID
	}
	switch {
	case c.projectID == "":
		return nil, errors.New("cloud: the token is for no project: set OS_PROJECT_NAME or OS_PROJECT_ID")
	case c.region == "":
		return nil, errors.New("cloud: the region is unknown: set OS_REGION_NAME")
	}
	if c.bases, err = findServices(p, c.projectID, c.region, o.Endpoints); err != nil {
		return nil, err
	}
	if who.byKey() {
		// Each request is signed: there is no token that could end. The domain is left out, because the SDK then
		// names the domain instead of the project in the request.
		c.aksk = golangsdk.AKSKAuthOptions{
			AccessKey: who.accessKey, SecretKey: who.secretKey, SecurityToken: who.securityToken, ProjectId: c.projectID,
		}
		return c, nil
	}
	t.session = &session{token: p.TokenID, now: o.Now, log: o.Log, login: func(ctx context.Context) (string, error) {
		p, err := login(ctx, t, who)
		if err != nil {
			return "", err
		}
		return p.TokenID, nil
	}}
	return c, nil
}

// ProjectID is the project all methods work in.
func (c *Cloud) ProjectID() string { return c.projectID }

// Region is the region of the services, such as eu-de.
func (c *Cloud) Region() string { return c.region }

// client is for one call only: the SDK takes no context, so each call gets a client whose transport carries it. What is
// shared (connections, token, rates) is in the transport; the client itself is never used by two goroutines.
func (c *Cloud) client(ctx context.Context, op operation) *golangsdk.ServiceClient {
	p := &golangsdk.ProviderClient{ProjectID: c.projectID, AKSKAuthOptions: c.aksk}
	c.transport.bind(ctx, op, p)
	base := c.bases[c.transport.ops[op].service]
	return &golangsdk.ServiceClient{ProviderClient: p, Endpoint: base, ResourceBase: base}
}

// ask is for what the SDK's packages lack or get wrong. Any success is one: the services answer 200, 201, 202 or 204.
func (c *Cloud) ask(ctx context.Context, op operation, method, path string, body, reply any) error {
	client := c.client(ctx, op)
	resp, err := client.Request(method, client.ServiceURL(path), &golangsdk.RequestOpts{
		JSONBody: body, JSONResponse: reply,
		OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	})
	if err != nil {
		return c.transport.told(op, err)
	}
	return resp.Body.Close()
}

// bind makes p's requests carry ctx and count as op. The SDK's own repeats are preset, so that it never writes them.
func (t *transport) bind(ctx context.Context, op operation, p *golangsdk.ProviderClient) {
	p.HTTPClient = http.Client{Transport: call{t, ctx, op}}
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
