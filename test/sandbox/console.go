// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// The actors: the part of the system that does something.
const (
	actorWorkload   = "workload"
	actorStranger   = "stranger"
	actorCloudEye   = "cloud eye"
	actorSMN        = "smn"
	actorAutopilot  = "autopilot"
	actorKubernetes = "kubernetes"
	actorOperator   = "operator"
	actorCloud      = "cloud"
)

// console prints events, one line each: the time of the cloud since the start, the actor, what it does. Events of a database
// that has a story belong to it. Stories are printed one after the other: the first one as it happens, the events of the others
// once the stories before them have ended.
type console struct {
	out   io.Writer
	start time.Time

	mu      sync.Mutex
	stories []*story
	turn    int // number of the story that is being printed
}

type story struct {
	name  string
	lines []string // not printed yet
	ended bool
}

func newConsole(out io.Writer) *console {
	return &console{out: out, start: time.Now()}
}

// restart makes this the time that the others count from.
func (c *console) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = time.Now()
}

// beginStory gives a database a story of its own; the title is its first line.
func (c *console) beginStory(name, title string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stories = append(c.stories, &story{name: name})
	c.writeLine(name, "\n"+name+"  "+title+"\n")
}

// endStory lets the next story begin once this one is printed. Later events of the database are not printed.
func (c *console) endStory(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.story(name); s != nil {
		s.ended = true
	}
	c.writeEnded()
}

// endStories writes the rest of all of them, however far they are.
func (c *console) endStories() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stories {
		s.ended = true
	}
	c.writeEnded()
}

func (c *console) writeEnded() {
	for c.turn < len(c.stories) && c.stories[c.turn].ended {
		c.turn++
		if c.turn < len(c.stories) {
			fmt.Fprint(c.out, strings.Join(c.stories[c.turn].lines, ""))
		}
	}
}

func (c *console) story(name string) *story {
	if i := slices.IndexFunc(c.stories, func(s *story) bool { return s.name == name }); i >= 0 {
		return c.stories[i]
	}
	return nil
}

func (c *console) writeLine(name, line string) {
	switch s := c.story(name); {
	case s == nil, !s.ended && s == c.stories[c.turn]:
		fmt.Fprint(c.out, line)
	case !s.ended:
		s.lines = append(s.lines, line)
	}
}

// printStep writes one line; the name is empty where it is about no single database.
func (c *console) printStep(actor, name, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	minutes := int(time.Since(c.start).Minutes() * demoSpeed)
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	if name != "" && c.story(name) == nil {
		text = name + ": " + text
	}
	c.writeLine(name, fmt.Sprintf("  %2d:%02d  %-10s  %s\n", minutes/60, minutes%60, actor, text))
}

// print writes text as it is.
func (c *console) print(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, format, args...)
}
