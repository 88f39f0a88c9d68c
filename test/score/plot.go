// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
)

// The size of a panel and of its margins, in the picture's units.
const (
	panelWidth, panelHeight             = 470, 380
	marginLeft, marginTop, marginBottom = 64, 52, 46
	lineHeight                          = 14 // of a label
)

// point is a rule in a panel.
type point struct {
	name         string
	x, y, labelY float64
}

// plot returns the picture: the minutes read-only against what is unused, one point per rule. The axis of the minutes is
// logarithmic, with a 0.
func (b board) plot() string {
	var out strings.Builder
	scores := b.groups[0].sum()
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="12">
<title>Minutes read-only against unused space, one point per rule; docs/scoreboard.md has the numbers</title>
<rect width="100%%" height="100%%" fill="#fff"/>
`, panelWidth, panelHeight)
	const width, height = panelWidth - marginLeft - 130, panelHeight - marginTop - marginBottom
	maxX, maxY := 0.0, 0.0
	for _, s := range scores {
		maxX, maxY = max(maxX, s[unused]), max(maxY, s[exposed])
	}
	unit := math.Pow(10, math.Floor(math.Log10(maxX)))
	if maxX/unit < 3 {
		unit /= 2
	}
	decades := math.Ceil(math.Log10(maxY + 1))
	x0, y0 := float64(marginLeft), float64(marginTop+height)
	atX := func(v float64) float64 { return x0 + v/maxX*width }
	atY := func(v float64) float64 { return y0 - math.Log10(v+1)/decades*height }
	out.WriteString(`<text x="14" y="22" font-size="14" font-weight="bold">40 disks, fills of 5 to 60 GB/h</text>` + "\n")
	out.WriteString(`<text x="14" y="40">minutes read-only (logarithmic), less is better</text>` + "\n")
	fmt.Fprintf(&out, `<text x="%.0f" y="%d" text-anchor="middle">GB·days unused, less is better</text>`+"\n", x0+width/2, panelHeight-8)
	for d := range int(decades) + 1 {
		v := math.Pow(10, float64(d))
		if d == 0 {
			v = 0
		}
		fmt.Fprintf(&out, `<path d="M%.0f %.1fh%d" stroke="#ddd"/><text x="%.0f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			x0, atY(v), width, x0-6, atY(v)+4, thousands(v))
	}
	for v := 0.0; v <= maxX; v += unit {
		fmt.Fprintf(&out, `<path d="M%.1f %dv%d" stroke="#ddd"/><text x="%.1f" y="%.0f" text-anchor="middle">%s</text>`+"\n",
			atX(v), marginTop, height, atX(v), y0+16, thousands(v))
	}
	var points []point
	for i, s := range scores {
		points = append(points, point{b.rules[i].Name, atX(s[unused]), atY(s[exposed]), atY(s[exposed])})
	}
	place(points)
	for _, p := range points {
		fill, weight := "#57606a", "normal"
		if p.name == us {
			fill, weight = "#0969da", "bold"
		}
		fmt.Fprintf(&out, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/><path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-width=".5"/>`,
			p.x, p.y, fill, p.x, p.y, p.x+10, p.labelY, fill)
		fmt.Fprintf(&out, `<text x="%.1f" y="%.1f" fill="%s" font-weight="%s">%s</text>`+"\n", p.x+12, p.labelY+4, fill, weight, p.name)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// place moves labels up or down that would cover a label before them or a point.
func place(points []point) {
	for i := range points {
		p := &points[i]
		isFree := func() bool {
			right := p.x + 16 + 7*float64(len(p.name))
			for n, other := range points {
				from, to := other.x-5, other.x+5
				if n < i && from < right && p.x < to+16+7*float64(len(other.name)) && math.Abs(other.labelY-p.labelY) < lineHeight {
					return false
				}
				if n != i && from < right && p.x+10 < to && math.Abs(other.y-p.labelY) < lineHeight/2+2 {
					return false
				}
			}
			return true
		}
		for step := 1; !isFree() && step < 20; step++ {
			p.labelY = p.y + float64(step/2*(1-2*(step%2)))*lineHeight/2
		}
	}
}
