// SPDX-License-Identifier: Apache-2.0

// Package browser tests the pages of the service and of the sandbox in a headless Chromium. It has tests only.
package browser

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// The README has the pictures overview-light and database-dark of this test: make pictures.
func TestPageWith400DatabasesInBothThemes(t *testing.T) {
	t.Parallel()
	address, host := serve(t, exampleFleet(t, 400))
	for _, theme := range []string{"light", "dark"} {
		b := open(t, theme, host)
		b.do(chromedp.EmulateViewport(1280, 900))
		b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`tbody a`))
		if n := eval[int](b, `document.querySelectorAll("tbody tr").length`); n != 400 {
			t.Errorf("the page shows %d databases", n)
		}
		b.checkAccessibility("overview " + theme)
		b.saveScreenshot("overview-" + theme)
		b.do(chromedp.EmulateViewport(1280, 1160))
		for name, database := range map[string]string{"database": "shop/orders", "young": "shop/young"} {
			b.show(address, database)
			b.checkAccessibility(name + " " + theme)
			b.saveScreenshot(name + "-" + theme)
		}
		back := eval[string](b, `getComputedStyle(document.body).backgroundColor`)
		if dark := back == "rgb(15, 19, 24)"; dark != (theme == "dark") {
			t.Errorf("in the %s theme the background is %s", theme, back)
		}
		b.do(chromedp.EmulateViewport(360, 800))
		for _, path := range []string{"/#/shop/orders", "/#/"} {
			b.do(chromedp.Navigate(address+path), chromedp.WaitVisible(`tbody tr`))
			if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
				t.Errorf("%s is %d pixels wide on a phone", path, wide)
			}
			b.checkAccessibility(path + " on a phone")
		}
		b.saveScreenshot("phone-" + theme)
	}
}

func TestHostileTextsAreOnlyText(t *testing.T) {
	t.Parallel()
	const hostile = `<img src=x onerror=alert(1)><script>alert(2)</script>"'&` + "\u202egnp\x00\x1b[31m\u2066"
	long := hostile + strings.Repeat("x", 5_000) + "</td></table>"
	f := &fleet{t: t, past: func(string, time.Duration, time.Time) (autopilot.Past, error) {
		return autopilot.Past{}, errors.New(hostile)
	}}
	decided := decision(hostile, hostile, hostile, long, time.Minute)
	f.add(hostile, hostile, hostile, 100, 500, 91, object{
		"alarms":     alarmOf("storage", 85, time.Minute),
		"decisions":  []object{decided, decision("storage", "None", hostile, long, time.Minute)},
		"changes":    []object{change(hostile, hostile, long, hostile, hostile, time.Hour), change("Volume", hostile, hostile, "cpu", hostile, 0)},
		"conditions": []object{condition("Armed", "True", hostile, long, time.Hour), condition(hostile, hostile, hostile, hostile, 0)},
	})
	f.addObject(object{"metadata": object{"namespace": "bare", "name": "bare"}}) // all fields are missing
	address, host := serve(t, f)
	b := open(t, "light", host)
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`tbody a`))
	harmless := func(page string) {
		t.Helper()
		if n := eval[int](b, `document.querySelectorAll("main script, main img, main table table").length`); n > 0 {
			t.Errorf("%s: %d elements come from texts", page, n)
		}
		if got := b.text("main"); !strings.Contains(got, `<img src=x onerror=alert(1)><script>alert(2)</script>"'&\u202egnp`) ||
			!strings.Contains(got, `\u001b[31m\u2066`) || strings.Contains(got, "\u202e") {
			t.Errorf("%s shows %.500s", page, got)
		}
		if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s is %d pixels too wide", page, wide)
		}
		b.checkAccessibility(page)
	}
	harmless("the overview")
	b.do(chromedp.Click(`//tbody//a[contains(., "onerror")]`), chromedp.WaitVisible(`section .notice`))
	harmless("the database")
	if got := b.text("section .notice"); !strings.Contains(got, "Cannot read from Cloud Eye: <img") {
		t.Errorf("the notice is %s", got)
	}
	b.do(chromedp.Navigate(address+"/#/bare/bare"), chromedp.WaitVisible(`table`))
	b.checkAccessibility("a database without a status")
}

func TestFilterCountsAndKeyboard(t *testing.T) {
	t.Parallel()
	address, host := serve(t, exampleFleet(t, 40))
	b := open(t, "light", host)
	rows := func() []string {
		return eval[[]string](b, `[...document.querySelectorAll("tbody tr:not([hidden]) th a")].map(e => e.innerText)`)
	}
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`tbody a`))
	if got := rows(); len(got) != 40 || got[0] != "search/logs" {
		t.Errorf("the database that needs attention is not first: %v", got[:2])
	}
	// With the keyboard only: the first Tab goes to the link to the content.
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, `document.activeElement.innerText`); got != "Skip to the content" {
		t.Errorf("the first Tab goes to %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	for range 20 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if !eval[bool](b, `getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
			t.Errorf("the focus is invisible on %s", eval[string](b, `document.activeElement.outerHTML`))
		}
		if eval[string](b, `document.activeElement.id`) == "filter" {
			break
		}
	}
	b.do(chromedp.KeyEvent("BILLING cooldown"))
	if got := rows(); len(got) != 1 || got[0] != "billing/invoices" || b.text("#shown") != "1 of 40 databases" {
		t.Errorf("the filter leaves %v", got)
	}
	b.do(chromedp.Click(`//button[contains(., "Limited")]`))
	if got := rows(); len(got) != 0 {
		t.Errorf("state and filter leave %v", got)
	}
	eval[bool](b, `(document.querySelector("#filter").value = "", document.querySelector("#filter").oninput(), true)`)
	if got := rows(); len(got) != 1 || got[0] != "billing/ledger" {
		t.Errorf("the state leaves %v", got)
	}
	b.checkAccessibility("a filtered overview")
	b.do(chromedp.Focus(`tbody tr:not([hidden]) a`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`svg.plot`))
	if got := b.text("h1"); got != "billing/ledger" || eval[string](b, `document.activeElement.id`) != "title" ||
		!strings.HasPrefix(eval[string](b, `document.title`), "billing/ledger") {
		t.Errorf("Enter on the row leads to %q", got)
	}
	eval[bool](b, `(history.back(), true)`)
	b.do(chromedp.WaitVisible(`tbody tr:not([hidden]) th a`))
	if got := rows(); len(got) != 1 {
		t.Errorf("on the way back the filter leaves %v", got)
	}
}

func TestDetailsOfADatabase(t *testing.T) {
	t.Parallel()
	address, host := serve(t, exampleFleet(t, 40))
	b := open(t, "light", host)
	const text = `document.querySelector("main").innerText`
	for _, tc := range []struct{ path, script, want string }{
		{"shop/orders", `"plots: " + document.querySelectorAll("svg.plot").length`, "plots: 6"},
		{"shop/orders", text, "A Flavor " + ordersFrom},
		{"shop/young", `"plots: " + document.querySelectorAll("svg.plot").length`, "plots: 3"},
		{"shop/young", `document.querySelector(".line.size").getAttribute("d")`, "M34 "}, // the left end
		{"shop/young", text, "Since the first measurement, 65 min ago"},
		{"shop/young", `sizes([[0, 80], [1, 87.5], [2, 90], [3, 97]], 100).join(" ")`, "0,80 1,90 2,90 3,100"},
		{"shop/young", text, "steps of 10 GB, at most 500 GB"},
		{"shop/young", text, "cooldown 60 min, at most 2 in 24 hours, only Sat, Sun 01:00–05:00 Europe/Berlin"},
		{"tenant-a/queue", text, "Waiting\nfor 11 min\nOver the threshold, waiting for Cloud Eye's 5 values"},
		{"billing/ledger", `document.querySelector(".letter").textContent`, "A–B"},
		{"tenant-b/copy", `document.querySelector("dl a").hash`, "#/shop/orders"}, // who manages it
		{"tenant-b/copy", `document.querySelector("td a").href`, "/docs/runbooks/reasons.md#instanceclaimed"},
	} {
		b.show(address, tc.path)
		if got := eval[string](b, tc.script); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s is %q, want %q", tc.path, tc.script, got, tc.want)
		}
	}
}

// tick refreshes the page without waiting for its timer, and returns the element with the focus.
const tick = `refresh().then(() => document.activeElement.outerHTML.slice(0, 60))`

func TestPageRefreshesAndKeepsWhatTheReaderDoes(t *testing.T) {
	t.Parallel()
	f := exampleFleet(t, 40)
	address, host := serve(t, f)
	b := open(t, "dark", host)
	b.do(chromedp.EmulateViewport(1000, 500))
	refresh := func() string {
		t.Helper()
		return run(b, chromedp.Evaluate[string](tick, chromedp.EvalAwaitPromise))
	}
	b.show(address, "shop/orders")
	eval[bool](b, `(window.kept = document.querySelector("table"), window.drawing = document.querySelector("svg.plot"), plotted = "", true)`)
	refresh()
	if !eval[bool](b, `kept.isConnected && !drawing.isConnected`) {
		t.Error("new measurements draw more than the plots, or less")
	}
	b.do(chromedp.Navigate(address+"/#/"), chromedp.WaitVisible(`tbody th a`))
	eval[bool](b, `(document.querySelector('a[href="#/shop/carts"]').focus(), scrollTo(0, 300), window.kept = document.querySelector("table"), true)`)
	refresh()
	if !eval[bool](b, `kept.isConnected`) {
		t.Error("without news the table is drawn again")
	}
	f.add("shop", "another", "rds.pg.n1.large.4", 70, 500, 50, object{})
	eval[bool](b, `(getSelection().selectAllChildren(kept), true)`)
	refresh()
	if !eval[bool](b, `kept.isConnected`) || b.text("#read") != "Waits while text is selected" {
		t.Error("a selection of text is lost")
	}
	eval[bool](b, `(getSelection().removeAllRanges(), true)`)
	if got := refresh(); !strings.Contains(got, "#/shop/carts") {
		t.Errorf("the focus moved to %s", got)
	}
	if got := b.text(".chips"); !strings.Contains(got, "41 databases") || eval[float64](b, `scrollY`) < 1 {
		t.Errorf("after a refresh the counts are %q", got)
	}
	b.checkAccessibility("the overview after a refresh")
	b.do(chromedp.Click(`#pause`))
	if !eval[bool](b, `paused && document.querySelector("#pause").getAttribute("aria-pressed") === "true"`) {
		t.Error("the page is not paused")
	}
	// A service that fails says so, and what it said before stays.
	eval[bool](b, `(window.fetch = () => Promise.resolve(new Response('{"error":"it is <b>busy</b>"}', {status: 503})), true)`)
	refresh()
	if got := b.text("#notices"); !strings.Contains(got, "it is <b>busy</b>") || !strings.Contains(b.text(".chips"), "41 databases") {
		t.Errorf("the notice is %q", got)
	}
	b.checkAccessibility("a service that fails")
}

// sandbox starts the program of make sandbox, and returns the URL of its status page.
func sandbox(t *testing.T) (address string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sandbox")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../test/sandbox").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, "up")
	stdout, err := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // fails only if the process has ended
		_, _ = io.Copy(&output, stdout)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("the sandbox ended with %v\n%s", err, output.String())
		}
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); { // the few lines after that one fit the pipe
		output.WriteString(lines.Text() + "\n")
		if m := regexp.MustCompile(`Status page +(http://\S+)/`).FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatal("the sandbox ended without printing the URL of its page")
	return ""
}

func TestSandboxInABrowser(t *testing.T) {
	t.Parallel()
	if os.Getenv("CHROMIUM") == "" {
		open(t, "light") // skips the test
	}
	address := sandbox(t)
	b := open(t, "light", strings.TrimPrefix(address, "http://"))
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//button[contains(., "3 Armed")]`)) // without a reload

	// The disk of orders fills up by itself. The alarm is at 30 of 40 GB.
	b.do(chromedp.EmulateViewport(1200, 900))
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//tbody//div[text()="Storage 40 → 50 GB"]`)) // without a reload
	b.do(chromedp.Navigate(address+"/#/default/orders"), chromedp.WaitVisible(`svg.plot .letter`))
	if got := b.text("main"); !strings.Contains(got, "Completed") || !strings.Contains(got, "% used, alarm at 75 %") {
		t.Errorf("the database is\n%s", got)
	}
	b.checkAccessibility("a database that has grown")
	b.saveScreenshot("grown-light")
}
