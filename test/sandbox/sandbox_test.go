// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
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
	refused := simcloud.Delivery{
		MessageID: "0123456789", Body: []byte(`{"alarm_name":"autopilot_default_orders_storage"}`),
		Type:  simcloud.TypeNotification,
		State: simcloud.Pending, Attempts: []simcloud.Attempt{{Status: 503}},
	}
	for want, print := range map[string]func(narrator){
		"smn         orders: message 01234567 was not taken: status 503": func(n narrator) { n.sent(refused) },
		"smn         orders: tries message 01234567 again":               func(n narrator) { n.sending(refused) },
		"autopilot   a message: foreign, answers 200": log(
			`{"msg":"notification foreign","result":"foreign","status":200}`),
		"autopilot   orders: CapReached: Storage is at its limit": log(
			`{"msg":"decision","name":"orders","action":"None","reason":"CapReached","message":"Storage is at its limit"}`),
		"autopilot   another replica leads": func(n narrator) {
			log(`{"msg":"leadership","leading":true}`)(n)
			log(`{"msg":"leadership","leading":true}`)(n)
		},
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
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, args := range []string{
		"", "dance", "demo -fast", "demo -speed 1", "demo -kube none",
		"up -speed 0", "up -speed x", "up -replicas 9", "up more",
	} {
		var complaint strings.Builder
		code := run(t.Context(), strings.Fields(args), out, &complaint)
		if code != exitUsage || !strings.Contains(complaint.String(), "Usage: sandbox") {
			t.Errorf("%q: exit code %d, %q", args, code, complaint.String())
		}
	}
	if code := run(t.Context(), []string{"--help"}, out, &strings.Builder{}); code != exitOK {
		t.Errorf("--help: exit code %d", code)
	}
}
