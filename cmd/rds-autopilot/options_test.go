// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

func TestFlagsThatAreNotGivenComeFromTheEnvironment(t *testing.T) {
	env := environment("RDS_AUTOPILOT_PUBLIC_URL=https://env.example/", "RDS_AUTOPILOT_MODE=Recommend",
		"RDS_AUTOPILOT_LOG_FORMAT=console", "RDS_AUTOPILOT_STATUS_PAGE=false", "RDS_AUTOPILOT_WATCH_NAMESPACES=a, b",
		"RDS_AUTOPILOT_ENDPOINT=smn=https://smn.example,ces=https://ces.example",
		"RDS_AUTOPILOT_LABELS=team=db,example.com/part=x", "RDS_AUTOPILOT_ALLOW_APPLY=Cloud", "RDS_AUTOPILOT_ALLOWED_INSTANCES=shop/*, */0a1b")
	c, o := serveCommand(env)
	must(t, errors.Join(c.ParseFlags([]string{"--log-format", "json"}), fromEnv(c.Flags(), env)))
	if _, err := o.validate(); err != nil {
		t.Fatal(err)
	}
	got := []any{o.PublicURL.Host, o.Mode, o.LogFormat, o.StatusPage, o.Namespaces, len(o.Endpoints), o.Labels, o.Allowed}
	want := []any{"env.example", v1alpha1.ModeRecommend, "json", false, []string{"a", "b"}, 2, map[string]string{"team": "db", "example.com/part": "x"},
		autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"shop/*", "*/0a1b"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// serve runs with this URL; each row adds what is wrong.
const serveOK = "serve --public-url https://a.example "

func TestWrongCommandLinesAreOneLineAndExitCode2(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	ended, cancel := context.WithCancel(t.Context())
	cancel()                                   // a command that starts in spite of its arguments ends at once
	for line, want := range map[string]string{ // part of the error
		"":                                     "a command is missing",
		"completion bash":                      `unknown command "completion"`,
		"fly":                                  `unknown command "fly"`,
		serveOK + "--nope":                     "--nope",
		serveOK + "nope":                       "nope",
		serveOK + "--smn-ca-file /nonexistent": "--smn-ca-file",
		serveOK + "--smn-ca-file " + file:      "--smn-ca-file",
		serveOK + "--mode of":                  "--mode: want Auto, Recommend or Off",
		serveOK + "--log-level loud":           "--log-level",
		serveOK + "--log-level fatal":          "--log-level",
		serveOK + "--log-format text":          "--log-format",
		"serve":                                "--public-url is required",
		"serve --public-url ftp://a.example":   "--public-url",
		"serve --public-url https://a.example/?x=1":              "--public-url",
		serveOK + "--allow-apply both":                           "--allow-apply",
		serveOK + "--allow-apply Cloud":                          "--allowed-instances",
		serveOK + "--allow-apply Cloud --allowed-instances ,":    "--allowed-instances",
		serveOK + "--allow-apply Cloud --allowed-instances 0a1b": "--allowed-instances",
		serveOK + "--endpoint obs=https://a.example":             "want smn, ces or rds",
		serveOK + "--endpoint smn":                               "--endpoint",
		serveOK + "--sweep-interval 0s":                          "--sweep-interval",
		serveOK + "--drain-delay 2m":                             "--drain-delay",
		serveOK + "--cloud-rate 0":                               "--cloud-rate",
		"plan -n shop":                                           "want the name of one",
		"plan -n shop a b":                                       "want the name of one",
		"plan -n shop orders -o json":                            "unknown shorthand flag",
		"plan -n shop orders --public-url https://a.example":     "--public-url",
		"doctor": "--public-url is required",
		"doctor --public-url https://a.example a": "want no arguments",
	} {
		var out, errs bytes.Buffer
		code := run(ended, strings.Fields(line), environment(), &out, &errs)
		if code != exitUsage || out.Len() > 0 || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, output %q, error %q; want %d and %q", line, code, &out, &errs, exitUsage, want)
		}
	}
	var out, errs bytes.Buffer
	env := environment("RDS_AUTOPILOT_CLOUD_RATE=fast", "RDS_AUTOPILOT_LEADER_ELECT=perhaps")
	code := run(ended, strings.Fields(serveOK), env, &out, &errs)
	if code != exitUsage || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "RDS_AUTOPILOT_CLOUD_RATE") {
		t.Errorf("environment: exit code %d, %q", code, &errs)
	}
}

func TestHelpAndVersionGoToStandardOutput(t *testing.T) {
	for line, want := range map[string]string{
		"help": "serve", "--help": "serve", "help plan": "rds-autopilot plan -n shop orders", "plan --help": "-endpoint",
		"version": version, "--version": "rds-autopilot version dev",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(line), environment(), &out, &errs)
		if code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, output %q, error %q; want %q", line, code, &out, &errs, want)
		}
	}
}

var update = flag.Bool("update", false, "write the tables of docs/command-line.md anew")

// TestTheTablesOfFlagsAreGenerated compares the table of each command with its flags; -update writes it. A flag that serve
// has too is explained there only.
func TestTheTablesOfFlagsAreGenerated(t *testing.T) {
	const page, head = "../../docs/command-line.md", "| flag | default | meaning |\n|---|---|---|\n"
	before, err := os.ReadFile(page)
	must(t, err)
	text := string(before)
	commands := 0
	root := newRoot(environment())
	serve, _, err := root.Find([]string{"serve"})
	must(t, err)
	for _, c := range root.Commands() {
		rows := head
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "help":
			case c != serve && serve.Flags().Lookup(f.Name) != nil:
				rows += fmt.Sprintf("| `--%s` | | as for `serve` |\n", f.Name)
			default:
				rows += describe(f)
			}
		})
		if rows == head {
			continue
		}
		table := regexp.MustCompile(`(?s)(\n## ` + c.Name() + `\n.*?)` + regexp.QuoteMeta(head) + `(\|[^\n]*\n)*`)
		if !table.MatchString(text) {
			t.Errorf("%s has no table for %s", page, c.Name())
		}
		text = table.ReplaceAllStringFunc(text, func(found string) string { return found[:strings.Index(found, head)] + rows })
		commands++
	}
	if commands < 3 {
		t.Errorf("%d commands with flags", commands)
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text, string(before)); diff != "" {
		t.Errorf("%s is stale: run make generate (-generated +file):\n%s", page, diff)
	}
}

func TestChartSchemaAcceptsEveryFlagOfServe(t *testing.T) {
	// The chart has values of their own for these, or fixes them in the pod.
	elsewhere := []string{
		"public-url", "mode", "watch-namespaces", "webhook-addr", "admin-addr", "kubeconfig", "context", "lease-namespace",
		"system-namespace", "leader-elect", "labels",
	}
	text, err := os.ReadFile("../../deploy/chart/values.schema.json")
	must(t, err)
	var schema struct {
		Properties struct {
			Flags struct{ Properties map[string]any }
		}
	}
	must(t, json.Unmarshal(text, &schema))
	accepted := schema.Properties.Flags.Properties
	c, _ := serveCommand(environment())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if accepted[f.Name] == nil && !slices.Contains(elsewhere, f.Name) {
			t.Errorf("values.schema.json lacks --%s", f.Name)
		}
		if accepted[f.Name] != nil && f.Shorthand != "" {
			t.Errorf("--%s has a short form, so it does not come from the environment, by which the chart sets it", f.Name)
		}
		delete(accepted, f.Name)
	})
	if len(accepted) > 0 {
		t.Errorf("values.schema.json has flags that serve lacks: %v", accepted)
	}
}

// describe returns the row of a flag. Its text says after the meaning what an empty value means. That is the default.
func describe(f *pflag.Flag) string {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name += ", `-" + f.Shorthand + "`"
	}
	meaning, empty, _ := strings.Cut(f.Usage, "; empty means ")
	value := f.DefValue
	if f.Value.Type() == "duration" {
		value = strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(value)
	}
	switch {
	case value != "" && value != "[]":
		value = "`" + value + "`"
	case empty != "":
		value = empty
	case strings.Contains(meaning, "; required"):
		meaning, value = strings.Replace(meaning, "; required", "", 1), "required"
	default:
		value = "none"
	}
	return fmt.Sprintf("| %s | %s | %s |\n", name, value, strings.ReplaceAll(meaning, "|", "\\|"))
}
