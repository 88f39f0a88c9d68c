// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is for the slowest of machines.
const patience = 5 * time.Minute

//go:embed testdata/check.js
var check string

// tab is a tab of a Chromium of its own, which keeps what must not happen.
type tab struct {
	context.Context
	t *testing.T

	mu     sync.Mutex
	hosts  []string // that may be asked
	faults []string
}

// open starts the browser that CHROMIUM names. The hosts are all that it may ask.
func open(t *testing.T, theme string, hosts ...string) *tab {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		t.Skip("CHROMIUM names no Chromium; make test-browser does")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 900), chromedp.UserDataDir(t.TempDir()))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	limited, cancel := context.WithTimeout(t.Context(), patience)
	allocated, free := chromedp.NewExecAllocator(limited, options...)
	ctx, end := chromedp.NewContext(allocated)
	b := &tab{Context: ctx, t: t, hosts: hosts}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for its end; what it must not do is said by then
		end()
		free()
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Error(f)
		}
	})
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	_, networkErr := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, logErr := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
	_, mediaErr := chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
	if err := errors.Join(chromedp.Listen(ctx, b.observe), networkErr, logErr, mediaErr); err != nil {
		t.Fatal(err)
	}
	return b
}

// observe notes errors in the console, and requests to other hosts.
func (b *tab) observe(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	note := func(format string, args ...any) { b.faults = append(b.faults, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				note("the console says %s: %s%s", e.Type, string(a.Value), a.Description)
			}
		}
	case *runtime.EventExceptionThrown:
		note("an exception: %s in %s", e.ExceptionDetails.Text, e.ExceptionDetails.URL)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			note("the console says %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "data" && !strings.Contains(" "+strings.Join(b.hosts, " ")+" ", " "+u.Host+" ") {
			note("a request to %s", e.Request.URL)
		}
	}
}

// forgive forgets what was noted and has this in it.
func (b *tab) forgive(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = slices.DeleteFunc(b.faults, func(f string) bool { return strings.Contains(f, text) })
}

// do fails the test where an action does not work.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// text is what the first such element shows.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Text(selector))
}

// run is the result of an action.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	value, err := chromedp.Run(b, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// eval is the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// until loads a page again and again until an expression about it is true.
func (b *tab) until(page, expression string) {
	b.t.Helper()
	for {
		b.do(chromedp.Navigate(page))
		if eval[bool](b, expression) {
			return
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-b.Done():
			b.t.Fatalf("waited in vain until %s", expression)
		}
	}
}

// accessible fails for each thing that people who need help to read would stumble over. AXE names a copy of axe-core, which is
// asked as well.
func (b *tab) accessible(page string) {
	b.t.Helper()
	for _, fault := range eval[[]string](b, check) {
		b.t.Errorf("%s: %s", page, fault)
	}
	path := os.Getenv("AXE")
	if path == "" {
		return
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	eval[bool](b, string(axe)+`;true`)
	found := run(b, chromedp.Evaluate[[]string](
		`axe.run().then(r => r.violations.map(v => v.impact + " " + v.id + ": " + v.nodes[0].html + " " + v.nodes[0].failureSummary))`, chromedp.EvalAwaitPromise))
	for _, fault := range found {
		b.t.Errorf("%s: axe-core: %s", page, fault)
	}
}

// picture writes what is seen to the folder of screenshots, which people look at.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".cache", "screenshots"))
	png := run(b, chromedp.CaptureScreenshot())
	if err = errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

// size sets what is seen, in CSS pixels.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}
