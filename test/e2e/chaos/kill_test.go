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
	writeSignal    = "signal"    // by the receiver, before it answers 200
	writeIntent    = "intent"    // before the Rds is patched
	writePatch     = "patch"     // of the Rds
	writeRequested = "requested" // the Rds has the new size
	writeOutcome   = "outcome"   // the intent becomes a change
	writeRecord    = "record"    // decisions, alarm states, cloud objects
	writeEvent     = "an event"  // on the Rds
)

// writeOf returns the kind of a write to the API server, and "" for a read.
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
			return writeRequested
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

// killedAt causes an alarm, kills the service at a write, and starts it again. It returns the writes until the kill. With write ""
// it kills nothing, and returns all writes until the end of the alarm.
func (h *installation) killedAt(write string, applied, redelivered bool) (writes []string) {
	h.t.Helper()
	var mu sync.Mutex
	var begun, dead atomic.Bool
	process := make(chan *world.Process, 1)
	die := func() {
		if !redelivered {
			h.dropping.Store(true)
		}
		dead.Store(true)
		_ = (<-process).Kill() // never fails
	}
	killer := faults.NewNth(1, func(r *http.Request) bool {
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
		Fault: killer.Fault,
		Answered: func(r *http.Request, body []byte, _ int) {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if begun.Load() && applied && writeOf(r) == write && !dead.Load() {
				die()
			}
		},
	})
	process <- first
	if _, err := h.WaitAutopilot(h.within(), "it is armed", world.Armed); err != nil {
		h.t.Fatal(err)
	}
	begun.Store(true)
	if err := h.SetWorkload(simcloud.Workload{UsedGB: 33}); err != nil { // needs 50 GB
		h.t.Fatal(err)
	}
	if write != "" {
		if code, err := first.Wait(h.within()); err != nil || code != -1 {
			h.t.Fatalf("exit code %d, %v, want it killed at %s; it wrote %v", code, err, write, writes)
		}
		h.serve()
	}
	h.grownOnce()
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(writes)
}

// The service is killed at every write from the message to the end of the alarm, before and after the API server has stored
// it. Then SMN repeats what was not acknowledged, or every further message is lost.
func TestKilledAtAnyWriteTheVolumeGrowsOnce(t *testing.T) {
	kinds := []string{writeSignal, writeIntent, writePatch, writeRequested, writeOutcome, writeRecord, writeEvent}
	t.Run("never", func(t *testing.T) {
		wrote := newInstallation(t).killedAt("", false, true)
		for _, w := range wrote {
			if !slices.Contains(kinds, w) {
				t.Errorf("unknown write %q: the test kills at none of its kind", w)
			}
		}
		for _, w := range kinds {
			if !slices.Contains(wrote, w) {
				t.Errorf("the writes %v contain no %s", wrote, w)
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
