// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestPlanOptions(t *testing.T) {
	for name, args := range map[string][]string{
		"no name": {"-n", "shop"}, "two names": {"-n", "shop", "a", "b"}, "another format": {"-n", "shop", "orders", "-o", "xml"},
		"an unknown flag": {"-n", "shop", "orders", "--nope"}, "serve's flag": {"-n", "shop", "orders", "--public-url", "https://a.example"},
		"an unknown mode": {"-n", "shop", "orders", "--mode", "automatic"}, "no rate": {"-n", "shop", "orders", "--cloud-rate", "0"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), append([]string{"plan"}, args...), environment(), nil, &out, &errs); code != exitUsage || out.Len() != 0 || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"plan", "--help"}, environment(), nil, &out, &errs); code != exitOK || !strings.Contains(out.String(), "-endpoint") || errs.Len() != 0 {
		t.Errorf("help: exit code %d, %q, %q", code, out.String(), errs.String())
	}
}
