// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// silence is how long nothing may be printed before a line says that the command is at work.
const silence = 10 * time.Second

// talk passes on what is printed. Where that is nothing for a while, it says so.
type talk struct {
	to    io.Writer
	ended chan struct{}

	mu   sync.Mutex
	last time.Time
}

func newTalk(to io.Writer) *talk {
	t := &talk{to: to, ended: make(chan struct{}), last: time.Now()}
	go t.run()
	return t
}

func (t *talk) run() {
	start, tick := time.Now(), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-t.ended:
			return
		case now := <-tick.C:
			if t.silentFor(now) >= silence {
				fmt.Fprintf(t, "── at work for %s\n", now.Sub(start).Round(time.Second))
			}
		}
	}
}

func (t *talk) silentFor(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Sub(t.last)
}

// Write passes p on.
func (t *talk) Write(p []byte) (int, error) { return t.write(t.to, p) }

func (t *talk) write(to io.Writer, p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	return to.Write(p)
}

// Close ends the watch over silence.
func (t *talk) Close() { close(t.ended) }

// beside is for another output of the same command.
func (t *talk) beside(to io.Writer) io.Writer {
	return writer(func(p []byte) (int, error) { return t.write(to, p) })
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
