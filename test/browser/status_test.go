// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestThePagesInBothThemes(t *testing.T) {
	t.Parallel()
	address, host := serve(t, exampleFleet())
	for _, theme := range []string{"light", "dark"} {
		b := open(t, theme, host)
		for _, page := range []struct {
			name, path, want string
			height           int64
		}{
			{"overview", "/", "13 of 13 databases", 900},
			{"database", "/databases/shop/orders", "A logical replication slot is inactive", 1400},
			{"health", "/health", "Last error of each service", 1000},
			{"nothing", "/databases/shop/none", "watches no database", 300},
		} {
			b.setSize(1280, page.height)
			b.do(chromedp.Navigate(address + page.path))
			if got := b.text("body"); !strings.Contains(got, page.want) {
				t.Errorf("%s lacks %q: %s", page.name, page.want, got)
			}
			b.checkAccessibility(page.name + " " + theme)
			b.saveScreenshot(page.name + "-" + theme)
		}
		b.ignoreFaults("404") // of the page "nothing"
		back := eval[string](b, `getComputedStyle(document.body).backgroundColor`)
		if dark := back == "rgb(21, 23, 28)"; dark != (theme == "dark") {
			t.Errorf("in the %s theme the background is %s", theme, back)
		}
		b.setSize(360, 800)
		for _, path := range []string{"/", "/databases/shop/orders", "/health"} {
			b.do(chromedp.Navigate(address + path))
			if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
				t.Errorf("%s is %d pixels wide on a phone", path, wide)
			}
			b.checkAccessibility(path + " on a phone")
		}
		b.saveScreenshot("phone-" + theme)
	}
}

func TestSortFilterAndKeyboard(t *testing.T) {
	t.Parallel()
	f := exampleFleet()
	for i := range 240 {
		f.add("many", fmt.Sprintf("db-%03d", i), "rds.pg.n1.large.4", 100, 500, float64(i%90))
	}
	address, host := serve(t, f)
	b := open(t, "light", host)
	rows := func() []string {
		return eval[[]string](b, `[...document.querySelectorAll("tbody th")].map(e => e.innerText)`)
	}
	b.do(chromedp.Navigate(address + "/"))
	if got := rows(); len(got) != 100 || got[0] != "search/index" {
		t.Errorf("the database that needs attention is not first: %v", got[:2])
	}
	b.do(chromedp.Click(`//thead//a[text()="Storage"]`), chromedp.WaitVisible(`th[aria-sort=ascending] a[href*="sort=storage"]`))
	b.do(chromedp.Click(`//thead//a[text()="Storage"]`), chromedp.WaitVisible(`th[aria-sort=descending] a[href*="sort=storage"]`))
	if got := rows(); got[0] != "billing/ledger" {
		t.Errorf("the fullest is not first: %v", got[:2])
	}
	b.do(chromedp.Click(`//a[text()="Next page"]`), chromedp.WaitVisible(`//a[text()="Previous page"]`))
	if got := b.text("caption"); got != "253 of 253 databases, page 2 of 3" {
		t.Errorf("the second page has the caption %q", got)
	}
	// With the keyboard only: the first Tab goes to the link to the content, and Enter applies the filter.
	b.do(chromedp.Navigate(address+"/"), chromedp.KeyEvent(kb.Tab))
	if got := eval[string](b, `document.activeElement.innerText`); got != "Skip to the content" || !eval[bool](b, `document.activeElement.getBoundingClientRect().left >= 0`) {
		t.Errorf("the first Tab goes to %q, which may be invisible", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	for range 40 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if !eval[bool](b, `getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
			t.Errorf("the focus is invisible on %s", eval[string](b, `document.activeElement.outerHTML`))
		}
		if eval[string](b, `document.activeElement.name ?? ""`) == "q" {
			break
		}
	}
	b.do(chromedp.KeyEvent("invoices"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//caption[starts-with(text(), "1 of")]`))
	if got := rows(); len(got) != 1 || got[0] != "billing/invoices" {
		t.Errorf("the filter leaves %v", got)
	}
	b.do(chromedp.Navigate(address+"/?namespace=billing&state=limited"), chromedp.WaitVisible(`//caption[starts-with(text(), "1 of")]`))
	b.do(chromedp.Focus(`tbody th a`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//h2[text()="Timeline"]`))
	if got := b.text("h1"); got != "billing/ledger" {
		t.Errorf("Enter on the row leads to %q", got)
	}
}
