// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

func TestPictures(t *testing.T) {
	address, host := serve(t, exampleFleet(t, 400))
	for _, theme := range []string{"light", "dark"} {
		b := open(t, theme, host)
		b.setSize(1280, 900)
		b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`tbody a`))
		b.checkAccessibility("overview " + theme)
		b.saveScreenshot("overview-" + theme)
		b.setSize(1280, 1500)
		b.do(chromedp.Navigate(address+"/#/shop/orders"), chromedp.WaitVisible(`svg.plot`))
		b.checkAccessibility("database " + theme)
		b.saveScreenshot("database-" + theme)
		b.setSize(360, 900)
		b.saveScreenshot("phone-database-" + theme)
		b.do(chromedp.Navigate(address+"/"), chromedp.WaitVisible(`tbody a`))
		b.saveScreenshot("phone-" + theme)
	}
}
