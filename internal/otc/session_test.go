// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

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

func TestLoginToAnotherProjectIsRejected(t *testing.T) {
	f := &fake{service: answer(401, `{}`)}
	c := connectTo(t, f, Options{})
	inner := c.session.authenticate
	c.session.authenticate = func(ctx context.Context, acct account) (*login, error) {
		g, err := inner(ctx, acct)
		if err == nil {
			g.projectID = strings.Repeat("f", 32)
		}
		return g, err
	}
	f.expire()
	if _, err := c.Topics(t.Context()); err == nil || !strings.Contains(err.Error(), "restart") {
		t.Errorf("err = %v", err)
	}
	if c.ProjectID() != fakeProject {
		t.Errorf("the project is %s", c.ProjectID())
	}
}
