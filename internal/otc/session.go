// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
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

// session is our login to the cloud; all calls share it. Credentials are read anew for each login: a mounted Secret that
// was changed is in force once the old one is refused, and nothing has to be restarted.
type session struct {
	find         func() (account, error)
	authenticate func(context.Context, account) (*login, error)
	now          func() time.Time
	log          *zap.Logger
	group        singleflight.Group
	up           prometheus.Gauge

	mu             sync.Mutex
	last           *login    // nil before the first login
	known          []string  // what must never appear in a log or an error
	refused        error     // the last login's, if the credentials were refused
	refusedAccount account   // whose they were
	refusedUntil   time.Time // they are not tried again before
}

// login is what the cloud let us in with.
type login struct {
	account   account
	token     string // empty with an access key: each request is signed, and nothing ends
	projectID string
	region    string
	bases     map[service]string // service → base URL of its resources, ends with "/"
	found     map[service]string // service → how that was found
}

// key identifies a login: the token, or the access key.
func (l *login) key() string {
	if l == nil {
		return ""
	}
	return cmp.Or(l.token, l.account.accessKey)
}

// aksk signs requests. The domain is left out, because the SDK then names the domain instead of the project in the request.
func (l *login) aksk() golangsdk.AKSKAuthOptions {
	if !l.account.byKey() {
		return golangsdk.AKSKAuthOptions{}
	}
	return golangsdk.AKSKAuthOptions{
		AccessKey: l.account.accessKey, SecretKey: l.account.secretKey, SecurityToken: l.account.securityToken, ProjectId: l.projectID,
	}
}

func (s *session) current() *login {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// get returns the present login, after a login if there was none yet.
func (s *session) get(ctx context.Context) (*login, error) {
	if l := s.current(); l != nil {
		return l, nil
	}
	if err := s.renew(ctx, ""); err != nil {
		return nil, err
	}
	return s.current(), nil
}

// renew makes sure that the login is no longer the one with that key: of all that find it refused, one logs in.
func (s *session) renew(ctx context.Context, stale string) error {
	done := s.group.DoChan(stale, func() (any, error) {
		if s.current().key() != stale {
			return nil, nil
		}
		// Others wait for this login as well: it must not end with the first caller. It ends by itself, as every call does.
		return nil, s.logIn(context.WithoutCancel(ctx))
	})
	select {
	case <-ctx.Done():
		return fmt.Errorf("log in: %w", ctx.Err())
	case r := <-done:
		return r.Err
	}
}

// logIn logs in with what the credentials are now.
func (s *session) logIn(ctx context.Context) error {
	acct, was, err := s.read()
	if err != nil {
		return err
	}
	next, err := s.authenticate(ctx, acct)
	if err == nil {
		err = was.checkSamePlace(next)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused = nil; errors.Is(err, ErrCredentials) {
		s.refused, s.refusedAccount, s.refusedUntil = err, acct, s.now().Add(refusedPause)
		s.up.Set(0)
	}
	if err != nil {
		return err
	}
	if was != nil && was.account != acct {
		s.log.Info("cloud credentials changed")
	}
	s.last = next
	s.known = append(acct.secrets(), next.token)
	s.up.Set(1)
	s.log.Info("logged in to the cloud", zap.String("project", next.projectID), zap.String("region", next.region))
	return nil
}

// read returns the credentials as they are now, unless they are the ones that were just refused, and the login so far.
func (s *session) read() (account, *login, error) {
	acct, err := s.find()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && s.last != nil: // perhaps they are being replaced
		s.log.Warn("the cloud credentials cannot be read; those of before are tried", zap.Error(err))
		acct = s.last.account
	case err != nil:
		return account{}, nil, err
	}
	if s.refused != nil && acct == s.refusedAccount && s.now().Before(s.refusedUntil) {
		return account{}, nil, s.refused
	}
	for _, secret := range acct.secrets() {
		if !slices.Contains(s.known, secret) {
			s.known = append(slices.Clip(s.known), secret) // others may be reading it
		}
	}
	return acct, s.last, nil
}

// checkSamePlace refuses a login to another project or region: what we made would be left behind there.
func (l *login) checkSamePlace(next *login) error {
	if l != nil && (l.projectID != next.projectID || l.region != next.region) {
		return fmt.Errorf("cloud: the credentials are now for project %s in %s, not %s in %s: that needs a restart",
			next.projectID, next.region, l.projectID, l.region)
	}
	return nil
}

// secrets are what must never appear in a log or an error.
func (s *session) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}
