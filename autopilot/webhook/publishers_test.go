// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// An authentic message of our topic may come from an alarm rule or a service that is not ours.
func TestOtherPublishersAreReportedOnceAnHour(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	b := newBench(t)
	now := noon()
	b.Log, b.Now = zap.New(core), func() time.Time { return now }
	ofRule := func(id string) string { return alarm("alarm", id, "rds039_disk_util", instance, noon()) }
	bodies := []string{"hello", "hello again", `{"alarm_id":"x"}`, ofRule("alOther1"), ofRule("alOther2")}
	round := func() (warnings, lines int) {
		b.warnings = nil
		logs.TakeAll()
		for range 3 {
			for _, message := range bodies {
				b.post(signedBody(m{"message": message, "timestamp": now.Format("2006-01-02T15:04:05Z")}))
			}
		}
		return len(b.warnings), len(logs.All())
	}
	if warnings, lines := round(); warnings != 2 || lines != 4 {
		t.Errorf("%d warnings %q and %d lines, want one for each publisher", warnings, b.notes, lines)
	}
	if warnings, lines := round(); warnings != 0 || lines != 0 {
		t.Errorf("repeated: %d warnings and %d lines", warnings, lines)
	}
	now = now.Add(time.Hour)
	if warnings, lines := round(); warnings != 2 || lines != 4 {
		t.Errorf("an hour later: %d warnings and %d lines", warnings, lines)
	}
}

func TestPublishersRememberAtMostMaxPublishers(t *testing.T) {
	var p publishers
	for i := range 3 * maxPublishers {
		if p.isRepeat(strings.Repeat("x", i), noon()) {
			t.Fatal("a new publisher counts as a repetition")
		}
		if len(p.seen) > maxPublishers {
			t.Fatalf("%d publishers are remembered", len(p.seen))
		}
	}
}
