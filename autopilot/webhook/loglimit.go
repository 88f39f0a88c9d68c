// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// linePanic is the key of the log lines about panics.
const linePanic result = "panic"

// logLimiter limits the log lines about messages that were not stored to linesPerSecond for each result, and logs the
// number of the others. Otherwise a stranger could fill the log and displace the lines that matter. The metric counts
// every message.
type logLimiter struct {
	mu      sync.Mutex
	windows map[result]*logWindow // results are a closed set, so the map stays small
}

// logWindow counts the lines of one result within a second.
type logWindow struct {
	open              bool
	lines, suppressed int
}

// allow reports whether a line about a message with that result may be written.
func (l *logLimiter) allow(log *zap.Logger, of result) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[of]
	if w == nil {
		w = &logWindow{}
		l.windows[of] = w
	}
	if !w.open {
		l.begin(log, of, w)
	}
	if w.lines == linesPerSecond {
		w.suppressed++
		return false
	}
	w.lines++
	return true
}

// begin opens a window for a second. The caller holds l.mu.
func (l *logLimiter) begin(log *zap.Logger, of result, w *logWindow) {
	w.open, w.lines = true, 0
	time.AfterFunc(time.Second, func() { l.end(log, of, w) })
}

// end logs the number of suppressed lines. The window stays open meanwhile, so a log that blocks holds one goroutine
// per result.
func (l *logLimiter) end(log *zap.Logger, of result, w *logWindow) {
	l.mu.Lock()
	n := w.suppressed
	w.suppressed = 0
	l.mu.Unlock()
	if n > 0 {
		log.Warn("notifications without a line of their own", zap.String("result", string(of)), zap.Int("count", n))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.open = false
	if w.suppressed > 0 { // while the line above was written
		l.begin(log, of, w)
	}
}
