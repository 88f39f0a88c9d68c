// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

// The writes of one growth, from the message to the end of the alarm.
const (
	writeSignal  = "signal"   // the receiver's: what it acknowledges
	writeIntent  = "intent"   // before the Rds is patched
	writePatch   = "patch"    // of the Rds
	writeAsked   = "asked"    // the Rds was seen to ask for it
	writeOutcome = "outcome"  // the intent moves to the changes
	writeRecord  = "record"   // decisions, states and what exists in the cloud
	writeEvent   = "an event" // for people
)

// writeOf names a write of the service to the API server; empty for what is none.
func writeOf(r *http.Request) string {
	switch name := faults.KubeName(r); name {
	case "patch rdss":
		return writePatch
	case "create events", "patch events":
		return writeEvent
	case "patch rdsautopilots/status":
		body, err := io.ReadAll(r.Body)
		var patch struct {
			Status map[string]json.RawMessage `json:"status"`
		}
		if err != nil || json.Unmarshal(body, &patch) != nil {
			return "unreadable"
		}
		pending, isPending := patch.Status["pending"]
		switch {
		case patch.Status["intake"] != nil:
			return writeSignal
		case patch.Status["changes"] != nil:
			return writeOutcome
		case isPending && strings.Contains(string(pending), `"to"`):
			return writeIntent
		case isPending && strings.Contains(string(pending), `"askedTime"`):
			return writeAsked
		}
		return writeRecord
	default:
		verb, _, _ := strings.Cut(name, " ")
		if verb == "get" || verb == "list" || verb == "watch" {
			return ""
		}
		return name
	}
}

// killedAt lets an installation's alarm come, kills the service at a write, and says what was written until then. Without a write
// to die at it sees the story to its end.
func (h *installation) killedAt(write string, applied, redelivered bool) (writes []string) {
	h.t.Helper()
	var mu sync.Mutex
	var begun, dead atomic.Bool
	process := make(chan *world.Process, 1)
	die := func() {
		if !redelivered {
			h.mute()
		}
		dead.Store(true)
		_ = (<-process).Kill() // never fails
	}
	mortal := faults.NewNth(1, func(r *http.Request) bool {
		w := writeOf(r)
		if !begun.Load() || w == "" {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		writes = append(writes, w)
		return w == write
	}, func(*http.Request) *simcloud.Fault {
		if !applied {
			die()
		}
		return &simcloud.Fault{Hang: true, Apply: applied}
	})
	first := h.proxied(faults.Hooks{
		Fault: mortal.Fault,
		Answered: func(r *http.Request, body []byte, _ int) {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if begun.Load() && applied && writeOf(r) == write && !dead.Load() {
				die()
			}
		},
	}, "--leader-elect=false")
	process <- first
	h.armed()
	begun.Store(true)
	h.alarm()
	if write != "" {
		if code, err := first.Wait(h.within()); err != nil || code != -1 {
			h.t.Fatalf("exit code %d, %v, want it killed at %s; it wrote %v", code, err, write, writes)
		}
		h.serve("--leader-elect=false")
	}
	h.grownOnce()
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(writes)
}

// Killed at every write from the message to the end of the alarm, before and after it was stored, with SMN sending again
// what was not acknowledged, and with every further message lost: always one growth.
func TestKilledAtAnyWriteTheVolumeGrowsOnce(t *testing.T) {
	kinds := []string{writeSignal, writeIntent, writePatch, writeAsked, writeOutcome, writeRecord, writeEvent}
	t.Run("never", func(t *testing.T) {
		wrote := newInstallation(t).killedAt("", false, true)
		for _, w := range wrote {
			if !slices.Contains(kinds, w) {
				t.Errorf("it writes %q, at which nobody kills it", w)
			}
		}
		for _, w := range kinds {
			if !slices.Contains(wrote, w) {
				t.Errorf("it wrote %v, which is no %s", wrote, w)
			}
		}
	})
	for _, write := range kinds {
		for _, applied := range []bool{false, true} {
			for _, redelivered := range []bool{false, true} {
				name := write + map[bool]string{false: " before", true: " after"}[applied] + map[bool]string{false: " lost", true: " again"}[redelivered]
				t.Run(name, func(t *testing.T) { newInstallation(t).killedAt(write, applied, redelivered) })
			}
		}
	}
}
