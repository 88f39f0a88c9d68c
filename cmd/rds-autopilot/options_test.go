// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func environment(pairs ...string) func(string) string {
	return func(key string) string {
		for _, p := range pairs {
			if k, v, _ := strings.Cut(p, "="); k == key {
				return v
			}
		}
		return ""
	}
}

// served are the options that serve would run with.
func served(t *testing.T, env func(string) string, args ...string) *serveOptions {
	t.Helper()
	c, o := serveCommand(env)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := fromEnv(c.Flags(), env); err != nil {
		t.Fatal(err)
	}
	if _, err := o.validate(); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOptionsHaveTheDocumentedDefaults(t *testing.T) {
	o := served(t, environment(), "--public-url", "https://a.example/smn")
	if o.WebhookAddr != ":8080" || o.AdminAddr != ":9090" || o.Mode != v1alpha1.ModeAuto || !o.LeaderElect || o.MaxMessageAge != time.Hour ||
		o.Sweep != 5*time.Minute || o.Recheck != 30*time.Second || o.CloudRate != 5 || o.DrainDelay != 5*time.Second || !o.StatusPage || len(o.CertHosts) != 0 ||
		len(o.ConfirmHosts) != 0 || o.LogFormat != "json" || len(o.Namespaces) != 0 ||
		o.Allowed.Apply != v1alpha1.ApplyOperator || len(o.Allowed.Instances) != 0 {
		t.Errorf("%+v", o)
	}
}

func TestTheEnvironmentStandsInForFlagsThatAreNotGiven(t *testing.T) {
	env := environment("RDS_AUTOPILOT_PUBLIC_URL=https://env.example/", "RDS_AUTOPILOT_MODE=Recommend", "RDS_AUTOPILOT_LEADER_ELECT=false", "RDS_AUTOPILOT_STATUS_PAGE=false",
		"RDS_AUTOPILOT_ENDPOINT=smn=https://smn.example,ces=https://ces.example", "RDS_AUTOPILOT_WATCH_NAMESPACES=a, b",
		"RDS_AUTOPILOT_ALLOW_APPLY=Cloud", "RDS_AUTOPILOT_ALLOWED_INSTANCES=shop/*, */0a1b")
	o := served(t, env, "--mode", "Off")
	if o.PublicURL.Host != "env.example" || o.Mode != v1alpha1.ModeOff || o.LeaderElect || o.StatusPage || len(o.Endpoints) != 2 || len(o.Namespaces) != 2 || o.Namespaces[1] != "b" ||
		o.Allowed.Apply != v1alpha1.ApplyCloud || len(o.Allowed.Instances) != 2 || o.Allowed.Instances[1] != "*/0a1b" {
		t.Errorf("%+v", o)
	}
}

// The chart sets variables and no flags, so that "kubectl exec … -- rds-autopilot plan" and doctor run with the settings of
// serve. A short form would exclude a flag from the environment.
func TestEveryFlagOfServeTakesTheEnvironmentInEachCommandThatHasIt(t *testing.T) {
	values := map[string]string{
		"mode": "Recommend", "allow-apply": "Cloud", "log-level": "debug", "log-format": "console",
		"public-url": "ftp://wrong", "smn-ca-file": filepath.Join(t.TempDir(), "none.pem"), // these show no value, so they must fail
	}
	ofType := map[string]string{
		"string": "x", "bool": "false", "int": "7", "float64": "2.5", "duration": "7m0s", "stringSlice": "a/b,c/d", "stringToString": "smn=https://a,rds=https://b",
	}
	env := func(c *cobra.Command, f *pflag.Flag) func(string) string {
		value := cmp.Or(values[f.Name], ofType[f.Value.Type()])
		if value == "" {
			t.Fatalf("%s --%s: the test has no value of type %s", c.Name(), f.Name, f.Value.Type())
		}
		return environment(envName(f.Name) + "=" + value)
	}
	root := newRoot(environment())
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	shared := map[string]int{}
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		for _, c := range newRoot(environment()).Commands() {
			own := c.Flags().Lookup(f.Name)
			if own == nil {
				continue
			}
			shared[c.Name()]++
			before := own.Value.String()
			err := fromEnv(c.Flags(), env(c, own))
			isRead := own.Value.String() != before
			if own.Value.Type() == "func" {
				isRead, err = err != nil, nil
			}
			if !isRead || err != nil {
				t.Errorf("%s --%s does not take %s: %v", c.Name(), f.Name, envName(f.Name), err)
			}
		}
	})
	if shared["plan"] < 5 || shared["doctor"] < 10 {
		t.Errorf("flags that a command shares with serve: %v", shared)
	}
}

func TestWrongOptionsAreOneLineAndExitCode2(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":               {},
		"an unknown command":       {"fly"},
		"a command misspelled":     {"sevre"},
		"no public URL":            {"serve"},
		"a public URL of a kind":   {"serve", "--public-url", "ftp://a.example"},
		"a public URL with query":  {"serve", "--public-url", "https://a.example/?x=1"},
		"an unknown flag":          {"serve", "--public-url", "https://a.example", "--nope"},
		"an argument":              {"serve", "--public-url", "https://a.example", "nope"},
		"an unknown mode":          {"serve", "--public-url", "https://a.example", "--mode", "automatic"},
		"an unknown way to apply":  {"serve", "--public-url", "https://a.example", "--allow-apply", "both"},
		"an instance of nobody":    {"serve", "--public-url", "https://a.example", "--allow-apply", "Cloud", "--allowed-instances", "0a1b"},
		"Cloud without a list":     {"serve", "--public-url", "https://a.example", "--allow-apply", "Cloud"},
		"Cloud with an empty list": {"serve", "--public-url", "https://a.example", "--allow-apply", "Cloud", "--allowed-instances", " ,"},
		"an unknown level":         {"serve", "--public-url", "https://a.example", "--log-level", "loud"},
		"an unknown service":       {"serve", "--public-url", "https://a.example", "--endpoint", "obs=https://a.example"},
		"an endpoint without URL":  {"serve", "--public-url", "https://a.example", "--endpoint", "smn"},
		"a sweep without interval": {"serve", "--public-url", "https://a.example", "--sweep-interval", "0s"},
		"a drain without end":      {"serve", "--public-url", "https://a.example", "--drain-delay", "2m"},
		"no rate":                  {"serve", "--public-url", "https://a.example", "--cloud-rate", "0"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, environment(), nil, &out, &errs); code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", name, code, exitUsage)
		}
		if strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("%s: it says %q, want one line", name, errs.String())
		}
		if name == "a command misspelled" && !strings.Contains(errs.String(), "did you mean serve?") {
			t.Errorf("it says %q", errs.String())
		}
	}
}

func TestAMistakeInTheEnvironmentIsOneLine(t *testing.T) {
	var out, errs bytes.Buffer
	env := environment("RDS_AUTOPILOT_CLOUD_RATE=fast", "RDS_AUTOPILOT_LEADER_ELECT=perhaps")
	code := run(t.Context(), []string{"serve", "--public-url", "https://a.example"}, env, nil, &out, &errs)
	if code != exitUsage || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "RDS_AUTOPILOT_CLOUD_RATE") {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
}

func TestHelpAndVersionGoToStandardOutput(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"version"}, {"serve", "--help"}, {"completion", "bash"}} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, environment(), nil, &out, &errs); code != exitOK || out.Len() == 0 || errs.Len() != 0 {
			t.Errorf("%v: exit code %d, %d bytes out, %q", args, code, out.Len(), errs.String())
		}
	}
}

func TestVersionForProgramsNamesTheBuild(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"version", "-o", "json"}, environment(), nil, &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	var b app.Build
	if err := json.Unmarshal(out.Bytes(), &b); err != nil || b.Version != version || b.Go == "" || b.Platform == "" {
		t.Errorf("%s: %v", out.String(), err)
	}
}
