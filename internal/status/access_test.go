// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// These are faults that axe-core calls serious, such as a field without a label or a table that no key scrolls.
func TestEveryPageWorksWithKeyboardAndScreenReader(t *testing.T) {
	t.Parallel()
	c := largeFleet(150)
	c.add("shop", "orders", notArmed)
	h := pageOf(t, c)
	for url, code := range map[string]int{
		"/": http.StatusOK, "/?page=2&namespace=x": http.StatusOK, "/health": http.StatusOK, "/databases/shop/orders": http.StatusOK,
		"/databases/team-0000/database-with-a-long-name-0000": http.StatusOK, "/databases/a/b": http.StatusNotFound,
	} {
		root := get(t, h, url, code)
		if attribute(elements(root, "html")[0], "lang") == "" || text(elements(root, "title")[0]) == "" {
			t.Errorf("%s lacks its language or title", url)
		}
		if len(elements(root, "h1")) != 1 || len(elements(root, "main")) != 1 || len(elements(root, "h3")) > 0 {
			t.Errorf("%s: its headings or landmarks are not in order", url)
		}
		ids := map[string]bool{}
		for n := range root.Descendants() {
			if id := attribute(n, "id"); id != "" && ids[id] {
				t.Errorf("%s has %s twice", url, id)
			} else {
				ids[id] = true
			}
		}
		if skip := attribute(elements(elements(root, "body")[0], "a")[0], "href"); !ids[strings.TrimPrefix(skip, "#")] {
			t.Errorf("%s: its first link, %s, skips to nothing", url, skip)
		}
		for _, th := range elements(root, "th") {
			if attribute(th, "scope") == "" || text(th) == "" {
				t.Errorf("%s: the header cell %q has no scope or text", url, text(th))
			}
		}
		for _, a := range elements(root, "a") {
			if text(a) == "" {
				t.Errorf("%s: the link to %s has no text", url, attribute(a, "href"))
			}
		}
		for _, field := range append(elements(root, "input"), elements(root, "select")...) {
			if attribute(field, "type") != "hidden" && !slices.ContainsFunc(slices.Collect(field.Ancestors()), func(n *html.Node) bool { return n.Data == "label" }) {
				t.Errorf("%s: the field %s has no label", url, attribute(field, "name"))
			}
		}
		for n := range root.Descendants() {
			if attribute(n, "class") == "wide" && (attribute(n, "tabindex") != "0" || attribute(n, "aria-label") == "") {
				t.Errorf("%s: no key scrolls a table", url)
			}
			if n.Data == "svg" && attribute(n, "aria-hidden") != "true" {
				t.Errorf("%s: a bar is read aloud", url)
			}
		}
	}
}

// WCAG 2.2 AA requires a contrast of 4.5 to 1 for text.
func TestTextHasContrastInBothThemes(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	pageOf(t, &cache{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status.css", nil))
	themes := regexp.MustCompile(`:root \{[^}]*--text: #[0-9a-f]{3,6};[^}]*--used[^}]*\}`).FindAllString(w.Body.String(), -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes", len(themes))
	}
	for _, theme := range themes {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+): #([0-9a-f]+);?`).FindAllStringSubmatch(theme, -1) {
			colors[m[1]] = m[2]
		}
		for _, name := range []string{"text", "quiet", "link", "bad", "busy", "good"} {
			for _, back := range []string{"back", "soft"} {
				if c := contrast(t, colors[name], colors[back]); c < 4.5 {
					t.Errorf("%s on %s: %.1f to 1 in %s", name, back, c, theme)
				}
			}
		}
		if c := contrast(t, colors["used"], colors["volume"]); c < 3 { // the limit of WCAG for graphics
			t.Errorf("used and free space look alike: %.1f to 1 in %s", c, theme)
		}
	}
}

// contrast returns WCAG's ratio of the luminances of two CSS colours without #.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(color string) float64 {
		if len(color) == 3 {
			color = string([]byte{color[0], color[0], color[1], color[1], color[2], color[2]})
		}
		var sum float64
		for i, weight := range []float64{.2126, .7152, .0722} {
			n, err := strconv.ParseUint(color[2*i:2*i+2], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			s := float64(n) / 255
			if s <= .04045 {
				sum += weight * s / 12.92
			} else {
				sum += weight * math.Pow((s+.055)/1.055, 2.4)
			}
		}
		return sum
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}
