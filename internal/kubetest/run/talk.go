package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// talk passes on what a command prints, and knows when that was.
type talk struct {
	to   io.Writer
	also *talk // hears of it as well

	mu   sync.Mutex
	last time.Time
}

func (t *talk) Write(p []byte) (int, error) {
	if t.also != nil {
		t.also.heard()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	return t.to.Write(p)
}

func (t *talk) heard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
}

// sayIfSilent prints a line if nothing was printed for so long.
func (t *talk) sayIfSilent(silence time.Duration, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.last) >= silence {
		t.last = now
		fmt.Fprint(t.to, line)
	}
}
