// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"sync"
)

// checklist keeps what was expected and what came of it.
type checklist struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	what string
	err  error
}

// add notes one expectation; an error says why it was not met. It returns whether it was.
func (l *checklist) add(what string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry{what, err})
	return err == nil
}

// summary is one line, and what went wrong after it. The error is nil if nothing did.
func (l *checklist) summary() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	met := 0
	for _, e := range l.entries {
		if e.err == nil {
			met++
		}
	}
	fmt.Fprintf(&text, "%d of %d as expected\n", met, len(l.entries))
	for _, e := range l.entries {
		if e.err != nil {
			fmt.Fprintf(&text, "  not as expected: %s\n    %v\n", e.what, e.err)
		}
	}
	if met < len(l.entries) {
		return text.String(), fmt.Errorf("%d of %d expectations were not met", len(l.entries)-met, len(l.entries))
	}
	return text.String(), nil
}
