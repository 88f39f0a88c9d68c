package otc

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
)

const (
	// loginTimeout bounds one renewal, whoever waits for it.
	loginTimeout = 30 * time.Second
	// refusedPause keeps us from trying refused credentials again: IAM locks an account after a few failures.
	refusedPause = 5 * time.Minute
)

// session is the one token that all calls share.
type session struct {
	login func(context.Context) (token string, err error)
	now   func() time.Time
	log   *zap.Logger
	group singleflight.Group

	mu      sync.Mutex
	token   string
	refused error // the last login's, if the credentials were refused
	until   time.Time
}

func (s *session) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// renew makes sure that the token is no longer stale: of all that find it refused, one logs in.
func (s *session) renew(ctx context.Context, stale string) error {
	done := s.group.DoChan(stale, func() (any, error) {
		s.mu.Lock()
		token, refused, until := s.token, s.refused, s.until
		s.mu.Unlock()
		switch {
		case token != stale:
			return nil, nil
		case refused != nil && s.now().Before(until):
			return nil, refused
		}
		// Others wait for this login as well: it must not end with the first caller.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loginTimeout)
		defer cancel()
		token, err := s.login(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refused = nil; errors.Is(err, ErrCredentials) {
			s.refused, s.until = err, s.now().Add(refusedPause)
		}
		if err != nil {
			return nil, err
		}
		s.token = token
		s.log.Info("cloud token renewed")
		return nil, nil
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-done:
		return r.Err
	}
}
