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

// patience is long enough for a slow machine.
const patience = 5 * time.Minute

//go:embed testdata/check.js
var check string

// tab is a tab in a Chromium of its own. It records faults, which fail the test at its end.
type tab struct {
	context.Context
	t *testing.T

	mu     sync.Mutex
	hosts  []string // to which the page may send requests
	faults []string
}

// open starts the browser that CHROMIUM names. Its pages may send requests to the hosts only.
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
		_ = chromedp.Cancel(ctx) // waits until the browser has ended, so that all faults are recorded
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

// observe records errors in the console, and requests to other hosts.
func (b *tab) observe(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	record := func(format string, args ...any) { b.faults = append(b.faults, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				record("the console shows %s: %s%s", e.Type, string(a.Value), a.Description)
			}
		}
	case *runtime.EventExceptionThrown:
		record("an exception: %s in %s:%d: %s", e.ExceptionDetails.Text, e.ExceptionDetails.URL,
			e.ExceptionDetails.LineNumber+1, e.ExceptionDetails.Exception.Description)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			record("the console shows %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "data" && !strings.Contains(" "+strings.Join(b.hosts, " ")+" ", " "+u.Host+" ") {
			record("a request to %s", e.Request.URL)
		}
	}
}

// do runs actions, and fails the test if one fails.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// text returns the visible text of the first element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Text(selector))
}

// run returns the result of an action.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	value, err := chromedp.Run(b, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// eval returns the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// checkAccessibility fails the test for each barrier that testdata/check.js finds.
func (b *tab) checkAccessibility(page string) {
	b.t.Helper()
	for _, fault := range eval[[]string](b, check) {
		b.t.Errorf("%s: %s", page, fault)
	}
}

// saveScreenshot writes the visible part of the page to .cache/screenshots, for people to check.
func (b *tab) saveScreenshot(name string) {
	b.t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".cache", "screenshots"))
	png := run(b, chromedp.CaptureScreenshot())
	if err = errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

// show shows a database with its plots.
func (b *tab) show(address, database string) {
	b.t.Helper()
	title := fmt.Sprintf(`//h1[.=%q]`, database)
	b.do(chromedp.Navigate(address+"/#/"+database), chromedp.WaitVisible(title), chromedp.WaitVisible(`svg.plot`))
}
