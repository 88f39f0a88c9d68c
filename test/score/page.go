// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed" // the text of the page
	"fmt"
	"strings"
	"text/template"
)

//go:embed scoreboard.md.tmpl
var pageText string

// file is a generated file, with its name below the root of the repository.
type file struct{ name, text string }

// render returns the page and its picture.
func (b board) render() ([]file, error) {
	text, err := template.New("page").Funcs(template.FuncMap{
		"rules":  b.ruleTable,
		"tables": b.tables,
		"score": func(measure int, rule, load string) (string, error) {
			s, err := b.score(load, rule)
			return thousands(s[measure]), err
		},
		"loads":      b.count,
		"best":       func() int { return b.count() - len(b.dominated()) },
		"exceptions": exceptions,
		"joined":     func(names []string) string { return strings.Join(names, "; ") },
	}).Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("parse the text of the scoreboard: %w", err)
	}
	var page strings.Builder
	if err := text.Execute(&page, nil); err != nil {
		return nil, fmt.Errorf("write the text of the scoreboard: %w", err)
	}
	return []file{{"docs/scoreboard.md", page.String()}, {"docs/images/scoreboard.svg", b.plot()}}, nil
}

// count returns the number of loads.
func (b board) count() (n int) {
	for _, g := range b.groups {
		n += len(g.loads)
	}
	return n
}

// ruleTable returns the table of what the rules do.
func (b board) ruleTable() string {
	var out strings.Builder
	out.WriteString("| rule | does | source |\n|---|---|---|\n")
	for _, r := range b.rules {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", r.Name, r.Does, r.Source)
	}
	return out.String()
}

// tables returns one table for each group, with a row for each rule.
func (b board) tables() string {
	var out strings.Builder
	for _, g := range b.groups {
		fmt.Fprintf(&out, "### %s\n\n%s\n\n| rule |", g.name, g.about)
		for _, l := range g.loads {
			fmt.Fprintf(&out, " %s |", l.name)
		}
		fmt.Fprintf(&out, "\n|---|%s\n", strings.Repeat("---|", len(g.loads)))
		for i, r := range b.rules {
			fmt.Fprintf(&out, "| %s |", r.Name)
			for _, l := range g.loads {
				fmt.Fprintf(&out, " %s |", l.scores[i])
			}
			out.WriteString("\n")
		}
		out.WriteString("\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}
