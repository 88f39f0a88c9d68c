package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

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

func TestOptionsHaveTheDocumentedDefaults(t *testing.T) {
	o, err := parseOptions([]string{"--public-url", "https://a.example/smn"}, environment(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.WebhookAddr != ":8080" || o.AdminAddr != ":9090" || o.Mode != v1alpha1.ModeAuto || !o.LeaderElect || o.MaxMessageAge != time.Hour ||
		o.Sweep != 5*time.Minute || o.Recheck != 30*time.Second || o.CloudRate != 5 || o.DrainDelay != 5*time.Second || len(o.CertHosts) != 0 ||
		len(o.ConfirmHosts) != 0 || o.LogFormat != "json" || len(o.Namespaces) != 0 {
		t.Errorf("%+v", o)
	}
}

func TestTheEnvironmentStandsInForFlagsThatAreNotGiven(t *testing.T) {
	env := environment("RDS_AUTOPILOT_PUBLIC_URL=https://env.example/", "RDS_AUTOPILOT_MODE=Recommend", "RDS_AUTOPILOT_LEADER_ELECT=false",
		"RDS_AUTOPILOT_ENDPOINT=smn=https://smn.example,ces=https://ces.example", "RDS_AUTOPILOT_WATCH_NAMESPACES=a, b")
	o, err := parseOptions([]string{"--mode", "Off"}, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.PublicURL.Host != "env.example" || o.Mode != v1alpha1.ModeOff || o.LeaderElect || len(o.Endpoints) != 2 || len(o.Namespaces) != 2 || o.Namespaces[1] != "b" {
		t.Errorf("%+v", o)
	}
}

func TestWrongOptionsAreOneLineAndExitCode2(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":               {},
		"an unknown command":       {"fly"},
		"no public URL":            {"serve"},
		"a public URL of a kind":   {"serve", "--public-url", "ftp://a.example"},
		"a public URL with query":  {"serve", "--public-url", "https://a.example/?x=1"},
		"an unknown flag":          {"serve", "--public-url", "https://a.example", "--nope"},
		"an argument":              {"serve", "--public-url", "https://a.example", "nope"},
		"an unknown mode":          {"serve", "--public-url", "https://a.example", "--mode", "auto"},
		"an unknown level":         {"serve", "--public-url", "https://a.example", "--log-level", "loud"},
		"an unknown service":       {"serve", "--public-url", "https://a.example", "--endpoint", "obs=https://a.example"},
		"an endpoint without URL":  {"serve", "--public-url", "https://a.example", "--endpoint", "smn"},
		"a sweep without interval": {"serve", "--public-url", "https://a.example", "--sweep-interval", "0s"},
		"a drain without end":      {"serve", "--public-url", "https://a.example", "--drain-delay", "2m"},
		"no rate":                  {"serve", "--public-url", "https://a.example", "--cloud-rate", "0"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, environment(), &out, &errs); code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", name, code, exitUsage)
		}
		if len(args) > 1 && strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: it says %q, want one line", name, errs.String())
		}
	}
}

func TestHelpAndVersionGoToStandardOutput(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"version"}, {"serve", "--help"}} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, environment(), &out, &errs); code != exitOK || out.Len() == 0 || errs.Len() != 0 {
			t.Errorf("%v: exit code %d, %d bytes out, %q", args, code, out.Len(), errs.String())
		}
	}
}

func TestPlainHTTPIsNoticedUnlessLoopback(t *testing.T) {
	for url, want := range map[string]bool{
		"https://a.example": false, "http://a.example": true, "http://127.0.0.1:8080": false, "http://localhost/smn": false, "http://10.0.0.1/": true,
	} {
		o, err := parseOptions([]string{"--public-url", url}, environment(), nil)
		if err != nil || o.plain() != want {
			t.Errorf("%s: %t, %v, want %t", url, o.plain(), err, want)
		}
	}
}
