// SPDX-License-Identifier: Apache-2.0

package otc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcsps/rds-autopilot/internal/otc"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// mount writes clouds.yaml as kubelet mounts a Secret: a new folder each time, and a link that is swapped.
func mount(t *testing.T, dir string, env []string) {
	t.Helper()
	at := map[string]string{}
	for _, pair := range env {
		k, v, _ := strings.Cut(pair, "=")
		at[strings.TrimPrefix(k, "OS_")] = v
	}
	text := fmt.Sprintf("clouds: {otc: {region_name: %q, auth: {auth_url: %q, project_name: %q, user_domain_name: %q, username: %q, password: %q, ak: %q, sk: %q}}}\n",
		at["REGION_NAME"], at["AUTH_URL"], at["PROJECT_NAME"], at["USER_DOMAIN_NAME"], at["USERNAME"], at["PASSWORD"], at["ACCESS_KEY"], at["SECRET_KEY"])
	version, err := os.MkdirTemp(dir, "..version")
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(dir, "..next")
	if err := errors.Join(
		os.WriteFile(filepath.Join(version, "clouds.yaml"), []byte(text), 0o600),
		os.Symlink(version, next), os.Rename(next, filepath.Join(dir, "..data")),
	); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "clouds.yaml")
	if err := os.Symlink(filepath.Join("..data", "clouds.yaml"), file); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", file) // the SDK's reader asks the process
}

func onlyCloud(k string) string { return map[string]string{"OS_CLOUD": "otc"}[k] }

func TestChangedSecretTakesEffectWithoutRestart(t *testing.T) {
	for name, env := range map[string]func(*simcloud.Cloud) []string{
		"password":   (*simcloud.Cloud).Env,
		"access key": (*simcloud.Cloud).AKSKEnv,
	} {
		t.Run(name, func(t *testing.T) {
			sim, dir := simulate(t, simcloud.Options{}), t.TempDir()
			mount(t, dir, env(sim))
			reg := prometheus.NewPedanticRegistry()
			c, err := otc.Connect(t.Context(), otc.Options{Env: onlyCloud, Rate: 10000, Registerer: reg})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Topics(t.Context()); err != nil {
				t.Fatal(err)
			}
			sim.RenewCredentials()
			for range 3 {
				if _, err := c.Topics(t.Context()); !errors.Is(err, otc.ErrCredentials) {
					t.Errorf("with the old ones: %v", err)
				}
			}
			loggedIn(t, reg, 0)
			sim.ResetRequests()
			mount(t, dir, env(sim))
			_, err = c.Topics(t.Context())
			if err != nil && name == "access key" { // signed before it was known that the key is another
				_, err = c.Topics(t.Context())
			}
			if err != nil {
				t.Errorf("with the new ones: %v", err)
			}
			loggedIn(t, reg, 1)
			if n := sim.Count("iam", "CreateToken"); n > 1 {
				t.Errorf("%d logins", n)
			}
		})
	}
}

func loggedIn(t *testing.T, reg prometheus.Gatherer, want int) {
	t.Helper()
	const name = "rds_autopilot_cloud_logged_in"
	text := fmt.Sprintf("# HELP %[1]s 1 if the cloud accepted our credentials at the last login, 0 if it refused them or was never reached.\n# TYPE %[1]s gauge\n%[1]s %[2]d\n", name, want)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
		t.Error(err)
	}
}

func TestPatientConnectReachesTheCloudLater(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	sim := simulate(t, simcloud.Options{Fault: func(r *http.Request) *simcloud.Fault {
		if service, _ := simcloud.OperationOf(r); service == "iam" && down.Load() {
			return &simcloud.Fault{Status: http.StatusServiceUnavailable}
		}
		return nil
	}})
	env := map[string]string{}
	for _, pair := range sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	reg := prometheus.NewPedanticRegistry()
	o := otc.Options{Env: func(k string) string { return env[k] }, Rate: 10000, Registerer: reg}
	if _, err := otc.Connect(t.Context(), o); !errors.Is(err, otc.ErrUnavailable) {
		t.Errorf("without patience: %v", err)
	}
	o.Patient = true
	c, err := otc.Connect(t.Context(), o)
	if err != nil {
		t.Fatalf("with patience: %v", err)
	}
	if c.Region() != "eu-de" || c.ProjectID() != "" {
		t.Errorf("region %q, project %q", c.Region(), c.ProjectID())
	}
	if _, err := c.Topics(t.Context()); !errors.Is(err, otc.ErrUnavailable) || !strings.Contains(err.Error(), "iam Login") {
		t.Errorf("while it is away: %v", err)
	}
	loggedIn(t, reg, 0)
	down.Store(false)
	c.Reach(t.Context(), time.Millisecond)
	if c.ProjectID() != sim.ProjectID() {
		t.Errorf("project %q", c.ProjectID())
	}
	if _, err := c.Topics(t.Context()); err != nil {
		t.Error(err)
	}
	loggedIn(t, reg, 1)

	for name, tc := range map[string]struct {
		env map[string]string
		ok  bool
	}{
		"a wrong password": {map[string]string{"OS_PASSWORD": "wrong"}, true},
		"no region":        {map[string]string{"OS_REGION_NAME": "", "OS_PROJECT_NAME": "", "OS_PROJECT_ID": sim.ProjectID()}, false},
	} {
		o.Env = func(k string) string {
			if v, ok := tc.env[k]; ok {
				return v
			}
			if k == "OS_TENANT_NAME" {
				return ""
			}
			return env[k]
		}
		sim.ResetRequests()
		if _, err := otc.Connect(t.Context(), o); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if n := sim.Count("iam", "CreateToken"); n > 0 && !tc.ok {
			t.Errorf("%s: %d logins, although no login can help", name, n)
		}
	}
}

// Each restart is a login, and IAM locks an account after a few refused ones.
func TestRefusedLoginAtStartIsTriedAgainOnlyWhenTheFileChanges(t *testing.T) {
	sim, dir := simulate(t, simcloud.Options{}), t.TempDir()
	mount(t, dir, append(sim.Env(), "OS_PASSWORD=wrong"))
	reg := prometheus.NewPedanticRegistry()
	core, logs := observer.New(zapcore.WarnLevel)
	c, err := otc.Connect(t.Context(), otc.Options{Env: onlyCloud, Rate: 10000, Registerer: reg, Patient: true, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c.Reach(ctx, time.Millisecond)
	if n := sim.Count("iam", "CreateToken"); n != 1 || logs.Len() != 1 {
		t.Errorf("%d logins, %d lines in the log, want one of each: %v", n, logs.Len(), logs.All())
	}
	loggedIn(t, reg, 0)
	mount(t, dir, sim.Env())
	c.Reach(t.Context(), time.Millisecond)
	loggedIn(t, reg, 1)
	if n := sim.Count("iam", "CreateToken"); n != 2 {
		t.Errorf("%d logins", n)
	}
}
