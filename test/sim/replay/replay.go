// SPDX-License-Identifier: Apache-2.0

// Package replay sends the requests of a recording (doctor --record) to the simulated cloud and compares the replies: the
// same status, the same keys, types, units and forms, and the same order of states. Values of the tenant are placeholders in
// a recording. The package binds each to the value that the simulation returns in its place.
package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcsps/rds-autopilot/internal/recording"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// history is how long the instances of a recording exist before its first request, so that there is data of an hour.
const history = 75 * time.Minute

// Options change the simulation. The zero value is the simulation as it is.
type Options struct{ Settings simcloud.Settings }

// Read returns the exchanges of a recording.
func Read(r io.Reader) (lines []recording.Exchange, err error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		var x recording.Exchange
		if err := json.Unmarshal(scanner.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("line %d of the recording: %w", len(lines)+1, err)
		}
		lines = append(lines, x)
	}
	return lines, scanner.Err()
}

// player is one replay.
type player struct {
	*comparison
	sim   *simcloud.Cloud
	now   atomic.Pointer[time.Time]
	token string
	bound map[string]string // placeholder → value of the simulation

	placeholder *regexp.Regexp
}

// Run replays a recording and returns the differences.
func Run(ctx context.Context, lines []recording.Exchange, opts Options) ([]Difference, error) {
	if len(lines) == 0 {
		return nil, errors.New("the recording is empty")
	}
	p := &player{comparison: newComparison(), bound: map[string]string{},
		placeholder: regexp.MustCompile(`redacted-[a-zA-Z0-9+:]+-\d+`)}
	begin := lines[0].At.Add(-history)
	p.now.Store(&begin)
	var err error
	p.sim, err = simcloud.Start(simcloud.Options{
		Local: true, Now: func() time.Time { return *p.now.Load() }, Settings: opts.Settings, Transport: accepting{},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.sim.Close() }()
	if err := p.seed(ctx, lines); err != nil {
		return nil, fmt.Errorf("prepare the simulation: %w", err)
	}
	for i, x := range lines {
		if x.Status == 0 { // no answer says nothing about the cloud
			continue
		}
		p.line, p.request = i+1, x.Method+" "+x.Path
		p.until(ctx, x.At)
		p.confirm(x.Reply)
		status, header, body, err := p.send(ctx, x)
		if err != nil {
			return nil, err
		}
		p.exchange(x, status, header, body)
		p.bind(decode(x.Reply), decode(body))
	}
	p.end()
	return p.differences, nil
}

// until passes the time of the simulation.
func (p *player) until(ctx context.Context, at time.Time) {
	if at.After(*p.now.Load()) {
		p.now.Store(&at)
	}
	p.sim.Step(ctx)
}

// confirm does the receiver's part, which no recording contains: it confirms the subscriptions when the recording lists
// one as confirmed.
func (p *player) confirm(reply []byte) {
	rows, _ := at(decode(reply), "subscriptions").([]any)
	for _, row := range rows {
		if number(at(row, "status")) == simcloud.Confirmed {
			for _, s := range p.sim.Subscriptions() {
				p.sim.Confirm(s.URN)
			}
		}
	}
}

// url returns the address of a request in the simulation.
func (p *player) url(x recording.Exchange) string {
	// A real path begins with the version, one of the simulation with the service.
	m := regexp.MustCompile(`^(?:/(?:iam|smn|ces|rds|evs|ecs))?/((?:v\d|V1\.0)(?:\.\d)?/.*)$`).FindStringSubmatch(x.Path)
	if m == nil {
		return "http://api." + p.sim.Region() + ".otc.invalid" + p.fill(x.Path)
	}
	name := "rds"
	switch {
	case strings.HasPrefix(m[1], "V1.0/"):
		name = "ces"
	case strings.Contains(m[1], "/notifications"):
		name = "smn"
	case strings.HasPrefix(m[1], "v3/auth"), strings.HasPrefix(m[1], "v3/projects"), strings.HasPrefix(m[1], "v3/domains"):
		name = "iam"
	}
	query := url.Values{}
	for key, values := range x.Query {
		for _, value := range values {
			query.Add(key, p.fill(value))
		}
	}
	return p.sim.Endpoint(name) + "/" + p.fill(m[1]) + "?" + query.Encode()
}

// send sends a request of the recording to the simulation.
func (p *player) send(ctx context.Context, x recording.Exchange) (int, http.Header, []byte, error) {
	body := []byte(p.fill(string(x.Request)))
	login := x.Method == http.MethodPost && strings.HasSuffix(x.Path, "/auth/tokens")
	if login { // the credentials of the recording are redacted
		body = p.credentials()
		p.bind(decode(x.Request), decode(body))
	}
	req, err := http.NewRequestWithContext(ctx, x.Method, p.url(x), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("X-Auth-Token", p.token)
	res, err := p.sim.RoundTrip(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	reply, err := io.ReadAll(res.Body)
	if token := res.Header.Get("X-Subject-Token"); login && token != "" {
		p.token = token
	}
	return res.StatusCode, res.Header, reply, err
}

// credentials is a login at the simulation.
func (p *player) credentials() []byte {
	env := map[string]string{}
	for _, kv := range p.sim.Env() {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	return fmt.Appendf(nil, `{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":%q,"password":%q,"domain":{"name":%q}}}},`+
		`"scope":{"project":{"name":%q,"domain":{"name":%[3]q}}}}}`, env["OS_USERNAME"], env["OS_PASSWORD"], env["OS_DOMAIN_NAME"], env["OS_PROJECT_NAME"])
}

// fill replaces the placeholders of a request by the values that they are bound to. The others stay: they are names that the
// client has chosen.
func (p *player) fill(s string) string {
	return p.placeholder.ReplaceAllStringFunc(s, func(name string) string {
		if value, is := p.bound[name]; is {
			return value
		}
		return name
	})
}

// bind binds the placeholders of a recorded value to what the simulation has in their place.
func (p *player) bind(recorded, got any) {
	switch r := recorded.(type) {
	case map[string]any:
		for key, inner := range r {
			p.bind(inner, at(got, key))
		}
	case []any:
		if g, is := got.([]any); is {
			for i := range min(len(r), len(g)) {
				p.bind(r[i], g[i])
			}
		}
	case string:
		g, is := got.(string)
		names := p.placeholder.FindAllString(r, -1)
		if !is || len(names) == 0 {
			return
		}
		parts := p.placeholder.Split(r, -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		if m := regexp.MustCompile("^" + strings.Join(parts, "(.+?)") + "$").FindStringSubmatch(g); m != nil {
			for i, name := range names {
				if _, known := p.bound[name]; !known {
					p.bound[name] = m[i+1]
				}
			}
		}
	}
}

// accepting is every endpoint: it answers each message with 200.
type accepting struct{}

func (accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// first returns the first recorded successful reply to a GET whose path ends so.
func first(lines []recording.Exchange, end string) any {
	i := slices.IndexFunc(lines, func(x recording.Exchange) bool {
		return x.Method == http.MethodGet && x.Status == http.StatusOK && strings.HasSuffix(x.Path, end)
	})
	if i < 0 {
		return nil
	}
	return decode(lines[i].Reply)
}
