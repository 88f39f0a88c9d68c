// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// linesOf counts the lines about single messages by result, and sums the counts of the other lines.
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

func TestFloodLeavesFiveLinesPerSecondAndResultAndACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		b := newBench(t)
		b.Log = zap.New(core)
		const seconds, perSecond = 3, 1000
		for range seconds * perSecond {
			b.post("hello")
			time.Sleep(time.Second / perSecond)
		}
		if w := b.post(signedBody(map[string]string{"signature": "c2ln"})); w.Code != http.StatusForbidden {
			t.Errorf("status %d", w.Code)
		}
		time.Sleep(2 * time.Second) // until the last window has ended
		lines, counted := linesOf(logs, resultMalformed)
		if lines > (seconds+1)*linesPerSecond || lines+counted != seconds*perSecond {
			t.Errorf("%d lines and %d counted of %d messages", lines, counted, seconds*perSecond)
		}
		if lines, counted := linesOf(logs, resultForged); lines != 1 || counted != 0 {
			t.Errorf("another result has %d lines and %d counted, want its line", lines, counted)
		}
		before := logs.Len()
		b.post("hello")
		if logs.Len() != before+1 {
			t.Error("after the flood, a message has no line")
		}
	})
}

func TestEveryStoredMessageHasItsLineAndItsId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		b := newBench(t)
		b.Log = zap.New(core)
		for i := range 100 {
			b.post(signedBody(map[string]string{
				"message_id": fmt.Sprintf("%032x", i), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, noon().Add(time.Duration(i)*time.Second)),
			}))
		}
		if lines, _ := linesOf(logs, resultStored); lines != 100 || logs.FilterField(zap.String("messageID", strings.Repeat("0", 32))).Len() != 1 {
			t.Errorf("%d lines of 100 stored messages", lines)
		}
	})
}

// TestRepeatedMessageHasFiveLinesPerSecond repeats a recorded message, and one that is older than what is stored.
func TestRepeatedMessageHasFiveLinesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		b := newBench(t)
		b.Log = zap.New(core)
		newest := signedBody(map[string]string{
			"message_id": strings.Repeat("f", 32), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, noon().Add(time.Minute)),
		})
		b.post(newest)
		older := signedBody(nil)
		for range 100 {
			b.post(newest)
			b.post(older)
		}
		time.Sleep(2 * time.Second) // until the last window has ended
		for _, res := range []result{resultDuplicate, resultStale} {
			if lines, counted := linesOf(logs, res); lines != linesPerSecond || lines+counted != 100 {
				t.Errorf("%s: %d lines and %d counted of 100 messages", res, lines, counted)
			}
		}
	})
}

func TestBlockedLogHoldsOneGoroutinePerResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), stuck{forever}, zapcore.DebugLevel))
		l := logLimiter{windows: map[result]*logWindow{}}
		allowed := 0
		for range 600 { // a minute
			if l.allow(log, resultForged) {
				allowed++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if allowed != linesPerSecond {
			t.Errorf("%d lines were begun while the log was blocked, want %d", allowed, linesPerSecond)
		}
		close(forever)
		time.Sleep(2 * time.Second)
	})
}
