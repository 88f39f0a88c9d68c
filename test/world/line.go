// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Line is one line of a process. If it is not JSON, only Raw is set.
type Line struct {
	Raw    string
	Level  string
	Msg    string
	Fields map[string]any // the rest
}

// Field returns a field that is text. It returns an empty text for every other field.
func (l Line) Field(key string) string {
	text, _ := l.Fields[key].(string)
	return text
}

func parseLine(raw string) Line {
	l := Line{Raw: raw}
	var fields map[string]any
	if json.Unmarshal([]byte(raw), &fields) != nil {
		return l
	}
	take := func(key string) string {
		text, _ := fields[key].(string)
		delete(fields, key)
		return text
	}
	l.Level, l.Msg = take("level"), take("msg")
	l.Fields = fields
	return l
}

// transcript collects the lines of a process as it writes them.
type transcript struct {
	onLine func(Line)

	mu      sync.Mutex
	rest    []byte // of a line without its end
	lines   []Line
	changed chan struct{} // closed at the next line
}

func newTranscript(onLine func(Line)) *transcript {
	return &transcript{onLine: onLine, changed: make(chan struct{})}
}

// Write never fails. The process's output arrives here in order, in pieces of any size.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest = append(t.rest, p...)
	for {
		raw, rest, ok := bytes.Cut(t.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		line := parseLine(string(raw))
		t.rest = rest
		t.lines = append(t.lines, line)
		t.onLine(line)
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// since returns the lines from the n-th on, and a channel that is closed when there are more.
func (t *transcript) since(n int) ([]Line, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Line(nil), t.lines[n:]...), t.changed
}
