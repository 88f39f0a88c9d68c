// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

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
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, file)); err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Topics(t.Context()); err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
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
