// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
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
