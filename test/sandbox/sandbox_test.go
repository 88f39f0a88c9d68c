// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/test/world"
)

// The demo shows the other lines.
func TestSandboxPrintsWhatTheDemoDoesNotShow(t *testing.T) {
	log := func(raw string) func(narrator) {
		return func(n narrator) {
			l := world.Line{Raw: raw}
			if json.Unmarshal([]byte(raw), &l.Fields) == nil {
				l.Msg = l.Fields["msg"].(string)
			}
			n.line(nil, l)
		}
	}
	for want, print := range map[string]func(narrator){
		"autopilot   a message: foreign, answers 200": log(
			`{"msg":"notification foreign","result":"foreign","status":200}`),
		"autopilot   orders: CapReached: Storage is at its limit": log(
			`{"msg":"decision","name":"orders","action":"None","reason":"CapReached","message":"Storage is at its limit"}`),
		"autopilot   panic: x": log("panic: x"),
	} {
		var out strings.Builder
		n := newNarrator(newConsole(&out))
		n.names = []string{"orders"}
		print(n)
		if got := out.String(); got != "   0:00  "+want+"\n" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWrongArgumentsPrintUsage(t *testing.T) {
	for _, args := range []string{
		"", "dance", "demo -fast", "demo -kube none", "up more",
	} {
		var complaint strings.Builder
		code := run(t.Context(), strings.Fields(args), io.Discard, &complaint)
		if code != exitUsage || !strings.Contains(complaint.String(), "Usage: sandbox") {
			t.Errorf("%q: exit code %d, %q", args, code, complaint.String())
		}
	}
}
