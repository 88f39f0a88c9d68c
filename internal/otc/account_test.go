// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
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
			must(t, err)
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
	must(t, os.WriteFile(path, []byte(cloudsYAML), 0o600))
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
			must(t, err)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(account{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	must(t, os.WriteFile(path, []byte("clouds: ["), 0o600))
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
	must(t, os.WriteFile(ca, block, 0o600))
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

// mountSecret writes clouds.yaml as kubelet mounts a Secret: another file of that name each time.
func mountSecret(t *testing.T, dir string, env []string) {
	t.Helper()
	get := lookUpIn(env)
	auth := ""
	for key, variable := range map[string]string{
		"auth_url": "OS_AUTH_URL", "project_name": "OS_PROJECT_NAME", "user_domain_name": "OS_USER_DOMAIN_NAME",
		"username": "OS_USERNAME", "password": "OS_PASSWORD", "ak": "OS_ACCESS_KEY", "sk": "OS_SECRET_KEY",
	} {
		auth += fmt.Sprintf("%s: %q, ", key, get(variable))
	}
	text := fmt.Sprintf("clouds: {otc: {region_name: %q, auth: {%s}}}\n", get("OS_REGION_NAME"), auth)
	file, next := filepath.Join(dir, "clouds.yaml"), filepath.Join(dir, "next")
	must(t, errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, file)))
	t.Setenv("OS_CLIENT_CONFIG_FILE", file) // the SDK reads the variables of the process
}

// cloudNameOnly is an environment that names only the cloud in clouds.yaml.
func cloudNameOnly(k string) string { return map[string]string{"OS_CLOUD": "otc"}[k] }

func TestChangedSecretTakesEffectWithoutRestart(t *testing.T) {
	for name, env := range map[string]func(*simcloud.Cloud) []string{
		"password":   (*simcloud.Cloud).Env,
		"access key": (*simcloud.Cloud).AKSKEnv,
	} {
		t.Run(name, func(t *testing.T) {
			sim, dir := simulate(t, simcloud.Options{}), t.TempDir()
			mountSecret(t, dir, env(sim))
			reg := prometheus.NewPedanticRegistry()
			c, err := Connect(t.Context(), Options{Env: cloudNameOnly, Transport: sim, Rate: 10000, Registerer: reg, Log: zap.NewNop(), Now: time.Now})
			must(t, err)
			must(t, listTopics(c, t.Context()))
			sim.RenewCredentials()
			for range 3 {
				if _, err := c.Topics(t.Context()); !errors.Is(err, ErrCredentials) {
					t.Errorf("with the old credentials: %v", err)
				}
			}
			checkLoggedIn(t, reg, 0)
			sim.ResetRequests()
			mountSecret(t, dir, env(sim))
			_, err = c.Topics(t.Context())
			if err != nil && name == "access key" { // was signed before the file was read again
				_, err = c.Topics(t.Context())
			}
			if err != nil {
				t.Errorf("with the new credentials: %v", err)
			}
			checkLoggedIn(t, reg, 1)
			if n := sim.Count("iam", "CreateToken"); n > 1 {
				t.Errorf("%d logins", n)
			}
		})
	}
}

// checkLoggedIn fails the test unless the gauge of successful logins has that value.
func checkLoggedIn(t *testing.T, reg prometheus.Gatherer, want int) {
	t.Helper()
	const name = "rds_autopilot_cloud_logged_in"
	const help = "1 if the cloud accepted our credentials at the last login, 0 if it refused them or was never reached."
	text := fmt.Sprintf("# HELP %[1]s %[2]s\n# TYPE %[1]s gauge\n%[1]s %[3]d\n", name, help, want)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
		t.Error(err)
	}
}

func TestPatientConnectReachesTheCloudLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // retries take seconds
		down := true
		sim := simulate(t, simcloud.Options{Fault: func(r *http.Request) *simcloud.Fault {
			if service, _ := simcloud.OperationOf(r); service == "iam" && down {
				return &simcloud.Fault{Status: http.StatusServiceUnavailable}
			}
			return nil
		}})
		env := lookUpIn(sim.Env())
		reg := prometheus.NewPedanticRegistry()
		o := Options{Env: env, Transport: sim, Rate: 10000, Log: zap.NewNop(), Now: time.Now}
		if _, err := Connect(t.Context(), o); !errors.Is(err, ErrUnavailable) {
			t.Errorf("without patience: %v", err)
		}
		o.Patient, o.Registerer = true, reg
		c, err := Connect(t.Context(), o)
		if err != nil {
			t.Fatalf("with patience: %v", err)
		}
		if c.Region() != "eu-de" || c.ProjectID() != "" {
			t.Errorf("region %q, project %q", c.Region(), c.ProjectID())
		}
		if _, err := c.Topics(t.Context()); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "iam Login") {
			t.Errorf("while IAM is down: %v", err)
		}
		checkLoggedIn(t, reg, 0)
		down = false
		c.Reach(t.Context(), time.Second)
		if c.ProjectID() != sim.ProjectID() {
			t.Errorf("project %q", c.ProjectID())
		}
		if _, err := c.Topics(t.Context()); err != nil {
			t.Error(err)
		}
		checkLoggedIn(t, reg, 1)

		// A login does not show the region, so Connect must not log in at each restart.
		o.Registerer = nil
		o.Env = func(k string) string {
			switch k {
			case "OS_REGION_NAME", "OS_PROJECT_NAME", "OS_TENANT_NAME":
				return ""
			case "OS_PROJECT_ID":
				return sim.ProjectID()
			}
			return env(k)
		}
		sim.ResetRequests()
		if _, err := Connect(t.Context(), o); err == nil || sim.Count("iam", "CreateToken") > 0 {
			t.Errorf("without a region: %v, %d logins", err, sim.Count("iam", "CreateToken"))
		}
	})
}

// Each restart is a login, and IAM locks an account after a few refused logins.
func TestRefusedLoginAtStartIsTriedAgainOnlyWhenTheFileChanges(t *testing.T) {
	sim, dir := simulate(t, simcloud.Options{}), t.TempDir()
	mountSecret(t, dir, append(sim.Env(), "OS_PASSWORD=wrong"))
	reg := prometheus.NewPedanticRegistry()
	core, logs := observer.New(zapcore.ErrorLevel)
	c, err := Connect(t.Context(), Options{Env: cloudNameOnly, Transport: sim, Rate: 10000, Registerer: reg, Patient: true, Log: zap.New(core), Now: time.Now})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c.Reach(ctx, time.Millisecond)
	if n := sim.Count("iam", "CreateToken"); n != 1 || logs.Len() != 1 {
		t.Errorf("%d logins, %d lines in the log, want one of each: %v", n, logs.Len(), logs.All())
	}
	checkLoggedIn(t, reg, 0)
	mountSecret(t, dir, sim.Env())
	c.Reach(t.Context(), time.Millisecond)
	checkLoggedIn(t, reg, 1)
	if n := sim.Count("iam", "CreateToken"); n != 2 {
		t.Errorf("%d logins", n)
	}
}
