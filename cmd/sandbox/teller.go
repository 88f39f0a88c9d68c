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

// Who does something.
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

// teller writes what happens, one line each: since when, who, about which database, what.
type teller struct {
	out     io.Writer
	colours bool
	start   time.Time
	now     func() time.Time

	mu sync.Mutex
}

func newTeller(out io.Writer, colours bool) *teller {
	return &teller{out: out, colours: colours, start: time.Now(), now: time.Now}
}

// say tells of one step; the name is empty where it is about no single database.
func (t *teller) say(actor, name, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	who := fmt.Sprintf("%-10s", actor)
	if t.colours {
		who = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour(actor), who)
	}
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	fmt.Fprintf(t.out, "%6.1f s  %s  %-7s  %s\n", t.now().Sub(t.start).Seconds(), who, name, text)
}

// print writes text as it is.
func (t *teller) print(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

// progress is a writer for what others tell line by line.
func (t *teller) progress() io.Writer { return &progress{t: t} }

type progress struct {
	t    *teller
	rest []byte
}

func (p *progress) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.t.say(actorDemo, "", "%s", strings.TrimPrefix(string(line), "kubetest: "))
		p.rest = rest
	}
}
