// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// linesOf returns the number of lines about single messages with that result, and the sum of the counts in the other
// lines.
func linesOf(logs *observer.ObservedLogs, res result) (lines, counted int) {
	for _, l := range logs.FilterField(zap.String("result", string(res))).All() {
		if n, ok := l.ContextMap()["count"].(int64); ok {
			counted += int(n)
		} else {
			lines++
		}
	}
	return lines, counted
}

func TestLogHasEveryStoredMessageAndFiveLinesPerSecondOfOtherResults(t *testing.T) {
	stored := func(i int) string {
		at := noon().Add(time.Duration(i) * time.Second)
		return signedBody(m{"message_id": fmt.Sprintf("%032x", i),
			"message": alarm("alarm", ruleID, "rds039_disk_util", instance, at)})
	}
	newest := stored(200)
	for res, tc := range map[result]struct {
		body  func(i int) string
		lines int
	}{
		resultStored:    {stored, 100},
		resultDuplicate: {func(int) string { return newest }, linesPerSecond},
		resultStale:     {stored, linesPerSecond},
		resultMalformed: {func(int) string { return "hello" }, linesPerSecond},
		resultForged:    {func(int) string { return signedBody(m{"signature": "c2ln"}) }, linesPerSecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			b := newBench(t)
			b.Log = zap.New(core)
			if res == resultDuplicate || res == resultStale {
				b.post(newest)
			}
			for i := range 100 {
				b.post(tc.body(i))
			}
			time.Sleep(2 * time.Second) // until the window has ended
			lines, counted := linesOf(logs, res)
			if lines != tc.lines || lines+counted != 100 {
				t.Errorf("%s: %d lines and %d counted of 100 messages, want %d lines", res, lines, counted, tc.lines)
			}
			before := logs.Len()
			if b.post("hello"); logs.Len() != before+1 {
				t.Errorf("%s: after the flood, a message has no line", res)
			}
		})
	}
}

func TestBlockedLogHoldsOneGoroutinePerResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := blockedWriter{make(chan struct{})}
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), blocked, zapcore.DebugLevel))
		l := logLimiter{windows: map[result]*logWindow{}}
		allowed := 0
		for range 600 { // for a minute
			if l.allow(log, resultForged) {
				allowed++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if allowed != linesPerSecond {
			t.Errorf("%d lines were begun while the log was blocked, want %d", allowed, linesPerSecond)
		}
		close(blocked.released)
		time.Sleep(2 * time.Second)
	})
}
