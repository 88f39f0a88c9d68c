// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, header map[string]string, body string) *http.Response {
	h := http.Header{}
	for k, v := range header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// record sends one request through a Recorder and returns the line.
func record(t *testing.T, method, url, sent string, reply *http.Response, secrets ...string) string {
	t.Helper()
	var out bytes.Buffer
	r := New(&out, time.Now)
	r.Wrap(answers(func(*http.Request) (*http.Response, error) { return reply, nil }), secrets...)
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", "MIIseedOfAToken0123456789")
	req.Header.Set("Authorization", "SDK-HMAC-SHA256 Access=SEEDEDACCESSKEY0001, Signature=5eed5eed5eed5eed")
	resp, err := r.RoundTrip(req)
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A recording is for publication, so a secret of any kind must not reach the file, in whatever field it comes.
func TestRecordingContainsNoSeededSecret(t *testing.T) {
	const (
		project  = "5eedc0de5d5074586b7f80cda075f5a8"
		instance = "5eedc0de3fcceb8967cc295572fa5d00in01"
		uuid     = "5eedc0de-1111-4222-8333-444455556666"
	)
	urn := "urn:smn:eu-de:" + project + ":seedtopic"
	line := record(t, http.MethodPost,
		"https://rds.eu-de.otc.t-systems.com/v3/"+project+"/instances/"+instance+"/action?name=seedname&marker=SYS.RDS.rds039_disk_util.rds_cluster_id:"+instance,
		`{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"seeduser","password":"seedpass","domain":{"name":"OTC5eed0000000000"}}}},
		  "scope":{"project":{"name":"eu-de_seedproject"}}}}`,
		answer(400, map[string]string{"X-Subject-Token": "MIIseedtoken99", "Content-Type": "application/json; charset=utf-8", "Set-Cookie": "seedcookie=1"},
			`{"error_msg":"The instance seedname of `+project+` at 10.77.5.66 is not 'seedquoted', seeduser: see seed.example.com, id `+uuid+`.",
			  "instances":[{"id":"`+instance+`","name":"seedname","alias":"seedalias","private_ips":["10.77.5.66"],"public_ips":["80.158.77.66"],
			    "db_user_name":"seedroot","vpc_id":"`+uuid+`","status":"ACTIVE","type":"seedSecretValue12345","tags":[{"key":"seedtag","value":"seedvalue"}],
			    "volume":{"type":"CLOUDSSD","size":100},"created":"2020-12-06T13:52:15+0000"}],
			  "tags":{"seedtagkey":"seedtagvalue"},"metadata":{"seedmeta":1},
			  "topic_urn":"`+urn+`","endpoint":"https://alarms.seed.example.com/smnseed?token=seedquery","mail":"seed@example.com",
			  "user":{"id":"`+project+`","name":"seedowner"},"account_number":775566775566,"pin":775566,"db_password":"775566","big":7755667755667755667,
			  "token":{"catalog":[{"type":"smnv2","endpoints":[{"url":"https://smn.eu-de.otc.t-systems.com/v2/`+project+`"},{"url":"https://seed.internal:8443/v2"}]}],"value":"seedintoken"},
			  "apiKey":"seedapikey","client_secret":{"inner":{"deep":"seeddeep","n":775566}},"x_unknown_credential":["seedlist"],
			  "something_new":"seednew","metric":{"namespace":"SEED.APP","metric_name":"seed_orders","unit":"seeds"},"unit":"seedUnit0123456789AbCdEf","region":"5eedc0de5eedc0de","status":"seed@example.com",
			  "5eedc0de5eedc0de5eedc0de5eedc0de":"x","seedname":"as a key","fail_reason":"no \"seed name\" AKseed123456"}`),
		"seedpass")
	if !json.Valid([]byte(line)) {
		t.Fatalf("no JSON: %s", line)
	}
	for _, seed := range []string{"seed", "5eed", "SEED", "775566", "10.77", "80.158", "otc0000"} {
		if strings.Contains(strings.ToLower(line), strings.ToLower(seed)) {
			t.Errorf("%q is in the recording:\n%s", seed, line)
		}
	}
	for _, kept := range []string{
		"ACTIVE", "CLOUDSSD", `"size":100`, "2020-12-06T13:52:15+0000", "The instance redacted-", "SYS.RDS.rds039_disk_util.rds_cluster_id", `"token":{"catalog"`, `[{"key":"redacted-`,
		"/instances/", "/action", "smnv2", "urn:smn:eu-de:redacted-hex32-", "https://smn.eu-de.otc.t-systems.com/v2/redacted-hex32-",
	} {
		if !strings.Contains(line, kept) {
			t.Errorf("%q is not in the recording:\n%s", kept, line)
		}
	}
}

// Two lines about the same object must show that it is the same.
func TestPlaceholdersAreStable(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdefin03"
	line := record(t, http.MethodGet, "http://x/v3/instances?id="+id, "", answer(200, nil, `{"id":"`+id+`","resource":"`+id+`","other":"fedcba9876543210fedcba9876543210in03"}`))
	if n := strings.Count(line, `"redacted-hex32in03-1"`); n != 3 {
		t.Errorf("%d times the placeholder: %s", n, line)
	}
	if !strings.Contains(line, `"other":"redacted-hex32in03-2"`) {
		t.Errorf("%s", line)
	}
}

// send sends a request through a recorder.
func send(t *testing.T, r *Recorder, method, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://x/v3/jobs", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r.RoundTrip(req)
}

func TestRecorderPassesRequestAndReplyOn(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, time.Now)
	r.Wrap(answers(func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		return answer(200, map[string]string{"Content-Type": "text/html"}, "<p>"+string(body)+"</p>"), nil
	}))
	resp, err := send(t, r, http.MethodPost, "sent")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "<p>sent</p>" {
		t.Errorf("%q, %v", body, err)
	}
	if strings.Contains(out.String(), "sent") || !strings.Contains(out.String(), `"status":200`) {
		t.Errorf("a body that is no JSON is recorded: %s", &out)
	}
}

func TestRecorderRecordsThatThereWasNoAnswer(t *testing.T) {
	var out bytes.Buffer
	failure := errors.New("dial tcp 10.77.5.66: refused")
	r := New(&out, time.Now)
	r.Wrap(answers(func(*http.Request) (*http.Response, error) { return nil, failure }))
	resp, err := send(t, r, http.MethodGet, "")
	if resp != nil {
		defer resp.Body.Close()
	}
	if !errors.Is(err, failure) || !strings.Contains(out.String(), `"status":0`) || strings.Contains(out.String(), "10.77") {
		t.Errorf("%v: %s", err, &out)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRecorderReportsThatItCannotWrite(t *testing.T) {
	r := New(full{}, time.Now)
	r.Wrap(answers(func(*http.Request) (*http.Response, error) { return answer(200, nil, "{}"), nil }))
	resp, err := send(t, r, http.MethodGet, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if r.Err() == nil || !strings.Contains(r.Err().Error(), "no space left") {
		t.Error(r.Err())
	}
}
