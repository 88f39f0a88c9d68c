// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestFindAccountReadsTheEnvironment(t *testing.T) {
	password := account{
		authURL: "https://iam.eu-de.otc.t-systems.com/v3/", userName: "me", password: "p",
		domainName: "OTC-1", projectName: "eu-de_shop", region: "eu-de",
	}
	with := func(change func(*account)) account {
		a := password
		change(&a)
		return a
	}
	env := map[string]string{
		"OS_AUTH_URL": "https://iam.eu-de.otc.t-systems.com/v3", "OS_USERNAME": "me", "OS_PASSWORD": "p",
		"OS_USER_DOMAIN_NAME": "OTC-1", "OS_PROJECT_NAME": "eu-de_shop",
	}
	tests := map[string]struct {
		change map[string]string // "-" removes
		want   account
		err    string
	}{
		"password":                 {nil, password, ""},
		"URL below a path":         {map[string]string{"OS_AUTH_URL": "http://127.0.0.1:1/iam/v3"}, with(func(a *account) { a.authURL = "http://127.0.0.1:1/iam/v3/" }), ""},
		"domain by OS_DOMAIN_NAME": {map[string]string{"OS_USER_DOMAIN_NAME": "-", "OS_DOMAIN_NAME": "OTC-1"}, password, ""},
		"the user's domain id is no project": {
			map[string]string{"OS_USER_DOMAIN_ID": "d1"},
			with(func(a *account) { a.domainName, a.domainID = "", "d1" }), "",
		},
		"user by id": {map[string]string{"OS_USER_ID": "u1"}, with(func(a *account) { a.userName, a.userID = "", "u1" }), ""},
		"project by the id of the tenant": {
			map[string]string{"OS_PROJECT_NAME": "-", "OS_TENANT_ID": "p1", "OS_REGION_NAME": "eu-nl"},
			with(func(a *account) { a.projectName, a.projectID, a.region = "", "p1", "eu-nl" }), "",
		},
		"access key": {
			map[string]string{"OS_USERNAME": "-", "OS_PASSWORD": "-", "OS_ACCESS_KEY": "ak", "OS_SECRET_KEY": "sk"},
			account{authURL: password.authURL, accessKey: "ak", secretKey: "sk", projectName: "eu-de_shop", region: "eu-de"}, "",
		},
		"both: the password": {map[string]string{"OS_ACCESS_KEY": "ak", "OS_SECRET_KEY": "sk"}, password, ""},
		"both, access key by OS_AUTH_TYPE": {
			map[string]string{"OS_ACCESS_KEY": "ak", "OS_SECRET_KEY": "sk", "OS_AUTH_TYPE": "aksk"},
			account{authURL: password.authURL, accessKey: "ak", secretKey: "sk", projectName: "eu-de_shop", region: "eu-de"}, "",
		},
		"nothing":    {map[string]string{"OS_PASSWORD": "-"}, account{}, "neither OS_USERNAME with OS_PASSWORD nor OS_ACCESS_KEY with OS_SECRET_KEY"},
		"no project": {map[string]string{"OS_PROJECT_NAME": "-"}, account{}, "OS_PROJECT_NAME or OS_PROJECT_ID"},
		"no domain":  {map[string]string{"OS_USER_DOMAIN_NAME": "-"}, account{}, "OS_USER_DOMAIN_NAME or OS_DOMAIN_NAME"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := maps.Clone(env)
			for k, v := range tt.change {
				if e[k] = v; v == "-" {
					delete(e, k)
				}
			}
			got, err := findAccount(lookUp(e))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("err = %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(account{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const cloudsYAML = `
clouds:
  shop:
    auth: {auth_url: "https://iam.file/v3", username: filed, password: filed-secret, user_domain_id: dom-id, domain_name: dom, project_name: eu-nl_shop}
    verify: false
    cacert: ca.pem
  keys:
    auth: {auth_url: "https://iam.file/v3", project_id: p1, ak: file-ak, sk: file-sk}
    region_name: eu-de
  agency:
    auth: {auth_url: "https://iam.file/v3", username: u, password: p, domain_name: dom, project_name: eu-de, target_agency_name: a}
`

func TestFindAccountReadsCloudsYAML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(path, []byte(cloudsYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pair := range os.Environ() { // the SDK reads the variables of the process
		if k, _, _ := strings.Cut(pair, "="); strings.HasPrefix(k, "OS_") || strings.HasPrefix(k, "AWS_") {
			t.Setenv(k, "")
		}
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", path)
	filed := account{
		authURL: "https://iam.file/v3/", userName: "filed", password: "filed-secret", domainID: "dom-id",
		projectName: "eu-nl_shop", region: "eu-nl", caFile: "ca.pem",
	}
	mine := filed
	mine.userName, mine.password = "me", "mine"
	tests := map[string]struct {
		env  map[string]string
		want account
	}{
		"a file alone, with cacert and the domain of the user": {map[string]string{"OS_CLOUD": "shop"}, filed},
		"user and password of the environment": {
			map[string]string{"OS_CLOUD": "shop", "OS_USERNAME": "me", "OS_PASSWORD": "mine"}, mine,
		},
		"access key": {
			map[string]string{"OS_CLOUD": "keys"},
			account{authURL: "https://iam.file/v3/", accessKey: "file-ak", secretKey: "file-sk", projectID: "p1", region: "eu-de"},
		},
	}
	for cloud, reason := range map[string]string{
		"agency": "agency", "shopp": "OS_CLOUD",
	} {
		_, err := findAccount(lookUp(map[string]string{"OS_CLOUD": cloud}))
		if err == nil || !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", cloud, err, reason)
		}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := findAccount(lookUp(tt.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(account{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if err := os.WriteFile(path, []byte("clouds: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := findAccount(lookUp(map[string]string{"OS_CLOUD": "shop"})); err == nil || !strings.Contains(err.Error(), "clouds.yaml") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestCertificatesAreVerifiedUnlessConfiguredOtherwise(t *testing.T) {
	server := httptest.NewTLSServer(&fake{})
	defer server.Close()
	server.Config.ErrorLog = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		key, value string
		ok         bool
		warned     int
	}{
		"unknown authority":     {"OS_NOTHING", "", false, 0},
		"its authority given":   {"OS_CACERT", ca, true, 0},
		"verification disabled": {"OS_INSECURE", "true", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			env := fakeEnv(server.URL)
			env[tt.key] = tt.value
			core, logs := observer.New(zapcore.WarnLevel)
			_, err := Connect(t.Context(), Options{Env: lookUp(env), Rate: 5, Log: zap.New(core), Now: time.Now})
			// The fake's catalogue has plain http, so only the login is verified.
			if (err == nil) != tt.ok || logs.Len() != tt.warned {
				t.Errorf("err = %v, %d warnings", err, logs.Len())
			}
		})
	}
}

// The password goes to the identity service, and the token to the others, so each of them is a line in the log.
func TestPlainHTTPToTheCloudIsLoggedUnlessLoopback(t *testing.T) {
	for raw, want := range map[string]int{"https://a.example": 0, "http://10.0.0.1": 2, "http://127.0.0.1:8080": 0, "http://localhost": 0} {
		core, logs := observer.New(zapcore.WarnLevel)
		connectTo(t, &fake{}, Options{Env: lookUp(fakeEnv(raw)), Log: zap.New(core), Endpoints: map[string]string{"smn": raw}})
		if logs.Len() != want {
			t.Errorf("%s: %d lines, want %d: %v", raw, logs.Len(), want, logs.All())
		}
	}
}
