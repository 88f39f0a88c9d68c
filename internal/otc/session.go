package otc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
)

// refusedPause keeps us from trying refused credentials again: IAM locks an account after a few failures.
const refusedPause = 5 * time.Minute

// session is who we are in the cloud; all calls share it. Credentials are read anew for each login: a mounted Secret that
// was changed is in force once the old one is refused, and nothing has to be restarted.
type session struct {
	find  func() (account, error)
	login func(context.Context, account) (*grant, error)
	now   func() time.Time
	log   *zap.Logger
	group singleflight.Group
	up    prometheus.Gauge

	mu      sync.Mutex
	granted *grant   // nil before the first login
	known   []string // what must never be told
	refused error    // the last login's, if the credentials were refused
	who     account  // whose they were
	until   time.Time
}

// grant is what a login gave.
type grant struct {
	who       account
	token     string // empty with an access key: each request is signed, and nothing ends
	projectID string
	region    string
	bases     map[service]string // service → base URL of its resources, ends with "/"
}

// key tells grants apart: the token, or the access key.
func (g *grant) key() string {
	if g == nil {
		return ""
	}
	return either(g.token, g.who.accessKey)
}

// aksk signs requests. The domain is left out, because the SDK then names the domain instead of the project in the request.
func (g *grant) aksk() golangsdk.AKSKAuthOptions {
	if !g.who.byKey() {
		return golangsdk.AKSKAuthOptions{}
	}
	return golangsdk.AKSKAuthOptions{
		AccessKey: g.who.accessKey, SecretKey: g.who.secretKey, SecurityToken: g.who.securityToken, ProjectId: g.projectID,
	}
}

func (s *session) current() *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}

// get returns the present grant, after a login if there was none yet.
func (s *session) get(ctx context.Context) (*grant, error) {
	if g := s.current(); g != nil {
		return g, nil
	}
	if err := s.renew(ctx, ""); err != nil {
		return nil, err
	}
	return s.current(), nil
}

// renew makes sure that the grant is no longer the one with that key: of all that find it refused, one logs in.
func (s *session) renew(ctx context.Context, stale string) error {
	done := s.group.DoChan(stale, func() (any, error) {
		if s.current().key() != stale {
			return nil, nil
		}
		// Others wait for this login as well: it must not end with the first caller. It ends by itself, as every call does.
		return nil, s.enter(context.WithoutCancel(ctx))
	})
	select {
	case <-ctx.Done():
		return fmt.Errorf("log in: %w", ctx.Err())
	case r := <-done:
		return r.Err
	}
}

// enter logs in with what the credentials are now.
func (s *session) enter(ctx context.Context) error {
	who, was, err := s.read()
	if err != nil {
		return err
	}
	g, err := s.login(ctx, who)
	if err == nil {
		err = was.same(g)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused = nil; errors.Is(err, ErrCredentials) {
		s.refused, s.who, s.until = err, who, s.now().Add(refusedPause)
		s.up.Set(0)
	}
	if err != nil {
		return err
	}
	if was != nil && was.who != who {
		s.log.Info("cloud credentials changed")
	}
	s.granted = g
	s.known = append(who.secrets(), g.token)
	s.up.Set(1)
	s.log.Info("logged in to the cloud", zap.String("project", g.projectID), zap.String("region", g.region))
	return nil
}

// read returns the credentials as they are now, unless they are the ones that were just refused, and the grant so far.
func (s *session) read() (account, *grant, error) {
	who, err := s.find()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && s.granted != nil: // perhaps they are being replaced
		s.log.Warn("the cloud credentials cannot be read; those of before are tried", zap.Error(err))
		who = s.granted.who
	case err != nil:
		return account{}, nil, err
	}
	if s.refused != nil && who == s.who && s.now().Before(s.until) {
		return account{}, nil, s.refused
	}
	for _, secret := range who.secrets() {
		if !slices.Contains(s.known, secret) {
			s.known = append(slices.Clip(s.known), secret) // others may be reading it
		}
	}
	return who, s.granted, nil
}

// same refuses a grant for another place: what we made would be left behind there.
func (g *grant) same(next *grant) error {
	if g != nil && (g.projectID != next.projectID || g.region != next.region) {
		return fmt.Errorf("cloud: the credentials are now for project %s in %s, not %s in %s: that needs a restart",
			next.projectID, next.region, g.projectID, g.region)
	}
	return nil
}

// secrets are what must never be told.
func (s *session) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}
