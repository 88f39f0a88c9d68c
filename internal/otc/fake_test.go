// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
)

const (
	fakePassword = "secret-pass-w0rd"
	fakeProject  = "0123456789abcdef0123456789abcdef"
)

// fake is a cloud with a working IAM. One handler serves all other requests.
type fake struct {
	service http.HandlerFunc // serves all other requests

	mu       sync.Mutex
	logins   int
	refuse   bool // logins are refused
	token    string
	requests int // to services other than IAM
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v3/auth/tokens" {
		f.login(w, r)
		return
	}
	f.mu.Lock()
	f.requests++
	f.mu.Unlock()
	f.service(w, r)
}

func (f *fake) login(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logins++
	if f.refuse {
		body, _ := io.ReadAll(r.Body)
		reply(w, 401, `{"error":{"code":401,"title":"Unauthorized","message":"The username or password is wrong: `+jsonEscape(string(body))+`"}}`)
		return
	}
	f.token = "secret-token-" + strconv.Itoa(f.logins)
	w.Header().Set("X-Subject-Token", f.token)
	base := "http://" + r.Host
	reply(w, 201, `{"token":{
		"project":{"id":"`+fakeProject+`","name":"eu-de_test","domain":{"id":"d1","name":"dom"}},
		"user":{"id":"u1","name":"me","domain":{"id":"d1","name":"dom"}},
		"catalog":[
			{"type":"smnv2","endpoints":[{"interface":"public","region":"eu-de","url":"`+base+`/v2/`+fakeProject+`"}]},
			{"type":"rdsv3","endpoints":[{"interface":"public","region":"eu-nl","url":"http://wrong"},{"interface":"public","region":"eu-de","url":"`+base+`/rds/v3/`+fakeProject+`"}]},
			{"type":"cesv1","endpoints":[{"interface":"public","region":"*","url":"`+base+`/V1.0"}]}
		]}}`)
}

// expire invalidates the present token.
func (f *fake) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = ""
}

// authentic reports whether r has the present token.
func (f *fake) authentic(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.token != "" && r.Header.Get("X-Auth-Token") == f.token
}

func (f *fake) counts() (logins, requests int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logins, f.requests
}

// inMemory serves without a network, which a bubble of synctest needs.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Host = r.URL.Host
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func fakeEnv(url string) map[string]string {
	return map[string]string{
		"OS_AUTH_URL": url + "/v3", "OS_USERNAME": "me", "OS_PASSWORD": fakePassword,
		"OS_DOMAIN_NAME": "dom", "OS_PROJECT_NAME": "eu-de_test",
	}
}

func lookUp(env map[string]string) func(string) string {
	return func(k string) string { return env[k] }
}

// connectTo connects to a fake without a network.
func connectTo(t *testing.T, f *fake, o Options) *Cloud {
	t.Helper()
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Rate == 0 {
		o.Rate = 1000
	}
	o.Now = time.Now
	if o.Env == nil {
		o.Env = lookUp(fakeEnv("http://cloud"))
	}
	o.Transport = inMemory{f}
	c, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, status, body) }
}

func jsonEscape(s string) string {
	b, _ := json.Marshal(s)
	return strings.Trim(string(b), `"`)
}
