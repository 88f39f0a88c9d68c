// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/shared"
)

const (
	// refusedPause is the pause after the first refused login. Each further one is longer by as much.
	refusedPause = 5 * time.Minute
	// refusedMost is the longest pause. IAM locks an account after 5 failures in 15 minutes, and two replicas try.
	refusedMost = 15 * time.Minute
)

// session holds the login that all calls share. It reads the credentials again for each login. So a changed Secret
// takes effect without a restart, once the cloud refuses the old credentials.
type session struct {
	find         func() (account, error)
	authenticate func(context.Context, account) (*login, error)
	now          func() time.Time
	log          *zap.Logger
	logins       *shared.Reads[string, *login]
	up           prometheus.Gauge

	mu             sync.Mutex
	last           *login    // nil before the first login
	known          []string  // secrets, which must never appear in a log or an error
	refused        error     // of the last login, if the cloud refused the credentials
	refusedAccount account   // the refused credentials
	refusals       int       // how often the cloud has refused them
	refusedUntil   time.Time // when they may be tried again
}

type login struct {
	account   account
	token     string // empty with an access key, because each request is signed
	projectID string
	region    string
	bases     map[service]string // service → base URL of its resources, ends with "/"
}

func (l *login) key() string {
	if l == nil {
		return ""
	}
	return cmp.Or(l.token, l.account.accessKey)
}

// aksk returns the options with which the SDK signs requests; without an access key it signs none. They contain no
// domain, because the SDK would then name the domain instead of the project in each request.
func (l *login) aksk() golangsdk.AKSKAuthOptions {
	return golangsdk.AKSKAuthOptions{
		AccessKey: l.account.accessKey, SecretKey: l.account.secretKey, SecurityToken: l.account.securityToken,
		ProjectId: l.projectID,
	}
}

func (s *session) current() *login {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// get returns the login. stale is the key of one that the cloud has refused, or empty. Of all callers that need another
// one, one logs in and the others wait.
func (s *session) get(ctx context.Context, stale string) (*login, error) {
	if l := s.current(); l.key() != stale {
		return l, nil
	}
	return s.logins.Get(ctx, stale, s.now())
}

func (s *session) newLogins() *shared.Reads[string, *login] {
	read := func(ctx context.Context, stale string, _ time.Time) (*login, time.Time, error) {
		if s.current().key() == stale {
			if err := s.logIn(ctx); err != nil {
				return nil, time.Time{}, err
			}
		}
		return s.current(), s.now(), nil
	}
	return &shared.Reads[string, *login]{Read: read, Now: s.now, Keep: time.Minute}
}

func (s *session) logIn(ctx context.Context) error {
	acct, was, err := s.read()
	if err != nil {
		return err
	}
	next, err := s.authenticate(ctx, acct)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = nil
	if errors.Is(err, ErrCredentials) {
		s.noteRefused(acct, err)
	}
	if err != nil {
		return err
	}
	s.refusals = 0
	if was != nil && was.account != acct {
		s.log.Info("cloud credentials changed")
	}
	s.last = next
	s.known = append(acct.secrets(), next.token)
	s.up.Set(1)
	s.log.Info("logged in to the cloud", zap.String("project", next.projectID), zap.String("region", next.region))
	return nil
}

// noteRefused keeps refused credentials from being tried again too soon. The caller holds s.mu.
func (s *session) noteRefused(acct account, err error) {
	if acct != s.refusedAccount {
		s.refusals = 0
	}
	s.refusals++
	pause := min(time.Duration(s.refusals)*refusedPause, refusedMost)
	s.refused, s.refusedAccount, s.refusedUntil = err, acct, s.now().Add(pause)
	s.up.Set(0)
	s.log.Error("the cloud refused the credentials in OS_* or clouds.yaml; trying again later, or when clouds.yaml changes",
		zap.Duration("after", pause), zap.Error(err))
}

// read returns the present credentials and the last login. It returns the last error if the cloud has just refused
// these credentials.
func (s *session) read() (account, *login, error) {
	acct, err := s.find()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && s.last != nil: // perhaps the Secret is being replaced
		s.log.Warn("the cloud credentials cannot be read; trying the previous ones", zap.Error(err))
		acct = s.last.account
	case err != nil:
		return account{}, nil, err
	}
	if s.refused != nil && acct == s.refusedAccount && s.now().Before(s.refusedUntil) {
		return account{}, nil, s.refused
	}
	for _, secret := range acct.secrets() {
		if !slices.Contains(s.known, secret) {
			s.known = append(slices.Clip(s.known), secret) // because secrets returns the slice without a copy
		}
	}
	return acct, s.last, nil
}

// secrets returns the values that must never appear in a log or an error. The caller must not modify the slice.
func (s *session) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}
