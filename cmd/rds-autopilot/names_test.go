// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestEnumsIgnoreCase(t *testing.T) {
	o := served(t, environment("RDS_AUTOPILOT_LOG_FORMAT=CONSOLE"), "--public-url", "https://a.example", "--mode", "recommend", "--log-level", "WARN")
	if o.Mode != "Recommend" || o.LogLevel != "warn" || o.LogFormat != "console" {
		t.Errorf("mode %q, level %q, format %q", o.Mode, o.LogLevel, o.LogFormat)
	}
}

// Each flag names its placeholder in backquotes, so that no help shows a value or a bare "string" for it.
func TestEveryFlagWithAnArgumentHasAPlaceholder(t *testing.T) {
	for _, c := range newRoot(environment()).Commands() {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(f)
			if name == "string" || strings.Contains(name, "Auto") || strings.Contains(name, "Operator") {
				t.Errorf("%s --%s %s", c.Name(), f.Name, name)
			}
		})
		if c.Runnable() && c.Name() != "help" && c.Name() != "completion" && c.Example == "" {
			t.Errorf("%s has no example", c.Name())
		}
	}
}

func TestUnknownNamesAreErrorsWithASuggestion(t *testing.T) {
	for line, want := range map[string]string{
		"help foo":                     `unknown command "foo"; --help lists them`,
		"help plam":                    `unknown command "plam": did you mean plan?`,
		"completion bsh":               `unknown shell "bsh": did you mean bash`,
		"serv":                         `unknown command "serv": did you mean serve?`,
		"serve --mode of":              `invalid argument "of" for "--mode" flag: want Auto, Recommend or Off`,
		"plan x --kubeconfig /no/file": "/no/file",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(line), environment(), strings.NewReader(""), &out, &errs)
		if code == exitOK || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, output %q; want %q", line, code, errs.String(), out.String(), want)
		}
	}
}

func TestVersionFlagAndHelpOfACommandSucceed(t *testing.T) {
	for line, want := range map[string]string{"--version": "rds-autopilot version dev", "help plan": "rds-autopilot plan -n shop orders", "completion": "zsh", "__complete serve --mode R": "Recommend"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), environment(), strings.NewReader(""), &out, &errs); code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %q %q", line, code, out.String(), errs.String())
		}
	}
}
