// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// fleetAfterGrowth returns the example in which the volume of shop/carts has grown.
func fleetAfterGrowth() *fleet {
	f := exampleFleet()
	i := slices.IndexFunc(f.all, func(a *v1alpha1.RdsAutopilot) bool { return a.Name == "carts" })
	s := &f.all[i].Status
	s.Pending, s.Instance.VolumeGB, s.Alarms.Rules[0].State = nil, 70, v1alpha1.StateOK
	s.Changes = []v1alpha1.Change{changed(v1alpha1.KindVolume, time.Second, "60", "70")}
	return f
}

// countRequests makes the page count its requests.
const countRequests = `window.requests = 0; { const fetch = window.fetch; window.fetch = (...args) => { window.requests++; return fetch(...args); }; } true`

// requestsAfterAMinute advances the clock of the page by a minute, and returns the number of its requests.
func (b *tab) requestsAfterAMinute() int {
	b.t.Helper()
	return eval[int](b, `{ const later = Date.now() + 60000; Date.now = () => later; document.dispatchEvent(new Event("visibilitychange")); } window.requests`)
}

const (
	rowOfCarts  = `[...document.querySelectorAll("tbody tr")].find(r => r.innerText.includes("shop/carts"))`
	growthInRow = `//tbody/tr[contains(., "shop/carts")]//bdi[text()="Storage 60 → 70 GB"][ancestor::td/small/time]`
)

func TestPageRefreshesItself(t *testing.T) {
	t.Parallel()
	f := exampleFleet()
	address, host := serve(t, f)
	b := open(t, "light", host)
	b.setSize(1000, 500)
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//header//button[text()="Pause"]`))
	// The reader has moved the focus to a row and scrolled.
	eval[bool](b, `(() => { const link = `+rowOfCarts+`.querySelector("a"); link.focus(); window.scrollTo(0, 300); return true; })()`)
	f.replace(fleetAfterGrowth())
	b.do(chromedp.WaitVisible(growthInRow)) // the page refreshes itself
	if got := eval[string](b, `document.activeElement.innerText`); got != "shop/carts" {
		t.Errorf("the focus moved to %q", got)
	}
	if at := eval[float64](b, `window.scrollY`); at < 1 {
		t.Errorf("the page scrolled to %v", at)
	}
	if got := b.text(".news"); !strings.Contains(got, "1 In alarm") || !strings.Contains(got, "2 changes in 24 hours") || strings.Contains(got, "Limited") {
		t.Errorf("a screen reader announces %q", got)
	}
	if got := b.text(".numbers"); !strings.Contains(got, "2 changes in 24 hours") {
		t.Errorf("the numbers are %q", got)
	}
	b.checkAccessibility("the overview after a refresh")
}

func TestPageDoesNotRefreshWhileInUse(t *testing.T) {
	t.Parallel()
	f := exampleFleet()
	address, host := serve(t, f)
	b := open(t, "dark", host)
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//header//button[text()="Pause"]`))
	eval[bool](b, countRequests)
	b.do(chromedp.Focus(`input[name=q]`), chromedp.KeyEvent("car"))
	if n := b.requestsAfterAMinute(); n != 0 {
		t.Error("the page refreshes while the reader types")
	}
	eval[bool](b, `document.activeElement.blur(), true`)
	if n := b.requestsAfterAMinute(); n != 1 {
		t.Errorf("the page was requested %d times after a minute, want once", n)
	}
	if got := eval[string](b, `document.querySelector("input[name=q]").value`); got != "car" {
		t.Errorf("the typed text became %q", got)
	}
	b.do(chromedp.Click(`//header//button[text()="Pause"]`), chromedp.WaitVisible(`//header//span[text()="Paused."]`))
	b.checkAccessibility("a paused page")
	f.replace(fleetAfterGrowth())
	if n := b.requestsAfterAMinute(); n != 1 {
		t.Error("a paused page refreshes")
	}
	b.do(chromedp.Navigate(address+"/databases/shop/carts"), chromedp.WaitVisible(`//header//span[text()="Paused."]`)) // the query parameter is kept
	b.do(chromedp.Navigate(address + "/"))
	f.replace(exampleFleet())
	b.do(chromedp.Navigate(address+"/databases/shop/carts"), chromedp.WaitVisible(`//header//button[text()="Resume"]`))
	eval[bool](b, `document.querySelectorAll("details").forEach(d => d.open = true), document.querySelector("main a").focus(), true`)
	details := eval[int](b, `document.querySelectorAll("details").length`)
	f.replace(fleetAfterGrowth())
	b.do(chromedp.Click(`//header//button[text()="Resume"]`), chromedp.WaitVisible(`//ol[@class="timeline"]//bdi[contains(text(), "Storage 60 → 70 GB is done")]`))
	if stillOpen := eval[int](b, `document.querySelectorAll("details[open]").length`); details == 0 || stillOpen != details {
		t.Errorf("%d of %d details are still open", stillOpen, details)
	}
	if got := b.text(".news"); !strings.Contains(got, "Storage 60 → 70 GB is done") {
		t.Errorf("a screen reader announces %q", got)
	}
}

func TestThePagesAreCompleteWithoutTheScript(t *testing.T) {
	t.Parallel()
	address, host := serve(t, exampleFleet())
	b := open(t, "light", host)
	if _, err := chromedp.Call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/": "13 of 13 databases", "/databases/shop/orders": "Timeline", "/health": "Last error of each service"} {
		b.do(chromedp.Navigate(address + path))
		if got := b.text("body"); !strings.Contains(got, want) || strings.Contains(got, "Pause") {
			t.Errorf("%s lacks %q or has the control Pause, which needs the script: %s", path, want, got)
		}
	}
}
