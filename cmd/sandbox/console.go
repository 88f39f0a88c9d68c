// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// The actors: the part of the system that does something.
const (
	actorDemo       = "demo"
	actorCloudEye   = "cloud eye"
	actorSMN        = "smn"
	actorAutopilot  = "autopilot"
	actorKubernetes = "kubernetes"
	actorOperator   = "operator"
	actorCloud      = "cloud"
)

// colour of an actor, as an ANSI code.
func colour(actor string) int {
	switch actor {
	case actorCloudEye:
		return 33
	case actorSMN:
		return 35
	case actorAutopilot:
		return 32
	case actorKubernetes:
		return 34
	case actorOperator, actorCloud:
		return 36
	}
	return 1
}

// colourful reports whether colours are wanted: on a terminal, unless NO_COLOR says otherwise.
func colourful(out *os.File, env func(string) string) bool {
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// console writes what happens, one line each: the time since the start, the actor, the database, what it does.
type console struct {
	out     io.Writer
	colours bool
	start   time.Time
	now     func() time.Time

	mu sync.Mutex
}

func newConsole(out io.Writer, colours bool) *console {
	return &console{out: out, colours: colours, start: time.Now(), now: time.Now}
}

// printStep writes one line; the name is empty where it is about no single database.
func (c *console) printStep(actor, name, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	label := fmt.Sprintf("%-10s", actor)
	if c.colours {
		label = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour(actor), label)
	}
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	fmt.Fprintf(c.out, "%6.1f s  %s  %-7s  %s\n", c.now().Sub(c.start).Seconds(), label, name, text)
}

// print writes text as it is.
func (c *console) print(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, format, args...)
}

// progress is a writer that prints each line written to it as a step of the demo.
func (c *console) progress() io.Writer { return &progress{console: c} }

type progress struct {
	console *console
	rest    []byte
}

func (p *progress) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.console.printStep(actorDemo, "", "%s", strings.TrimPrefix(string(line), "kubetest: "))
		p.rest = rest
	}
}
