// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// changing is a fleet that may become another one.
type changing struct{ now atomic.Pointer[fleet] }

func (c *changing) HasSynced() bool                                 { return true }
func (c *changing) EachAutopilot(each func(*v1alpha1.RdsAutopilot)) { c.now.Load().EachAutopilot(each) }
func (c *changing) EachTarget(each func(*autopilot.Target))         { c.now.Load().EachTarget(each) }
func (c *changing) Target(namespace, name string) *autopilot.Target {
	return c.now.Load().Target(namespace, name)
}
func (c *changing) Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool) {
	return c.now.Load().Autopilot(namespace, name)
}

// grown is a night after which the carts have what they waited for.
func grown() *fleet {
	f := aNight()
	i := slices.IndexFunc(f.all, func(a *v1alpha1.RdsAutopilot) bool { return a.Name == "carts" })
	s := &f.all[i].Status
	s.Pending, s.Instance.VolumeGB, s.Alarms.Rules[0].State = nil, 70, v1alpha1.StateOK
	s.Changes = []v1alpha1.Change{changed(v1alpha1.KindVolume, time.Second, "60", "70")}
	return f
}

// counting has the page count how often it asks.
const counting = `window.asked = 0; { const ask = window.fetch; window.fetch = (...of) => { window.asked++; return ask(...of); }; } true`

// look lets a minute pass in the page, and returns how often it has asked by then.
func (b *tab) look() int {
	b.t.Helper()
	return eval[int](b, `{ const later = Date.now() + 60000; Date.now = () => later; document.dispatchEvent(new Event("visibilitychange")); } window.asked`)
}

const (
	carts    = `[...document.querySelectorAll("tbody tr")].find(r => r.innerText.includes("shop/carts"))`
	hasGrown = `//tbody/tr[contains(., "shop/carts")]//bdi[text()="Storage 60 → 70 GB"][ancestor::td/small/time]`
)

func TestPageRefreshesItself(t *testing.T) {
	t.Parallel()
	var c changing
	c.now.Store(aNight())
	address, host := serve(t, &c)
	b := open(t, "light", host)
	b.size(1000, 500)
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//header//button[text()="Pause"]`))
	// Somebody has gone through the table to a row, and reads there.
	eval[bool](b, `(() => { const link = `+carts+`.querySelector("a"); link.focus(); window.scrollTo(0, 300); return true; })()`)
	c.now.Store(grown())
	b.do(chromedp.WaitVisible(hasGrown)) // by the page's own clock
	if got := eval[string](b, `document.activeElement.innerText`); got != "shop/carts" {
		t.Errorf("the focus has gone to %q", got)
	}
	if at := eval[float64](b, `window.scrollY`); at < 1 {
		t.Errorf("it has scrolled to %v", at)
	}
	if got := b.text(".news"); !strings.Contains(got, "1 In alarm") || !strings.Contains(got, "2 changes in 24 hours") || strings.Contains(got, "Limited") {
		t.Errorf("read aloud is %q", got)
	}
	if got := b.text(".numbers"); !strings.Contains(got, "2 changes in 24 hours") {
		t.Errorf("the numbers are %q", got)
	}
	b.accessible("the overview after it was renewed")
}

func TestPageDoesNotRefreshWhileInUse(t *testing.T) {
	t.Parallel()
	var c changing
	c.now.Store(aNight())
	address, host := serve(t, &c)
	b := open(t, "dark", host)
	b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`//header//button[text()="Pause"]`))
	eval[bool](b, counting)
	b.do(chromedp.Focus(`input[name=q]`), chromedp.KeyEvent("car"))
	if n := b.look(); n != 0 {
		t.Error("it is renewed while somebody types")
	}
	eval[bool](b, `document.activeElement.blur(), true`)
	if n := b.look(); n != 1 {
		t.Errorf("it was asked for %d times after a minute", n)
	}
	if got := eval[string](b, `document.querySelector("input[name=q]").value`); got != "car" {
		t.Errorf("what was typed has become %q", got)
	}
	b.do(chromedp.Click(`//header//button[text()="Pause"]`), chromedp.WaitVisible(`//header//span[text()="Paused."]`))
	b.accessible("a page that pauses")
	c.now.Store(grown())
	if n := b.look(); n != 1 {
		t.Error("it is renewed although it pauses")
	}
	b.do(chromedp.Navigate(address+"/databases/shop/carts"), chromedp.WaitVisible(`//header//span[text()="Paused."]`)) // the query parameter is kept
	b.do(chromedp.Navigate(address + "/"))
	c.now.Store(aNight())
	b.do(chromedp.Navigate(address+"/databases/shop/carts"), chromedp.WaitVisible(`//header//button[text()="Resume"]`))
	eval[bool](b, `document.querySelectorAll("details").forEach(d => d.open = true), document.querySelector("main a").focus(), true`)
	folded := eval[int](b, `document.querySelectorAll("details").length`)
	c.now.Store(grown())
	b.do(chromedp.Click(`//header//button[text()="Resume"]`), chromedp.WaitVisible(`//ol[@class="timeline"]//bdi[contains(text(), "Storage 60 → 70 GB is done")]`))
	if unfolded := eval[int](b, `document.querySelectorAll("details[open]").length`); folded == 0 || unfolded != folded {
		t.Errorf("%d of %d are unfolded still", unfolded, folded)
	}
	if got := b.text(".news"); !strings.Contains(got, "Storage 60 → 70 GB is done") {
		t.Errorf("read aloud is %q", got)
	}
	b.do(chromedp.Navigate(address + "/databases/shop/carts/plan"))
	if n := eval[int](b, `document.querySelectorAll("script, .follow").length`); n > 0 {
		t.Error("a plan is asked for again and again")
	}
}

func TestThePagesAreCompleteWithoutTheScript(t *testing.T) {
	t.Parallel()
	address, host := serve(t, aNight())
	b := open(t, "light", host)
	if _, err := chromedp.Call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/": "13 of 13 databases", "/databases/shop/orders": "Timeline", "/health": "Last error of each service"} {
		b.do(chromedp.Navigate(address + path))
		if got := b.text("body"); !strings.Contains(got, want) || strings.Contains(got, "Pause") {
			t.Errorf("%s lacks %q, or has a control that does nothing: %s", path, want, got)
		}
	}
}
