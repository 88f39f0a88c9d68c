// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// planKept is how long the page shows the same plan to everyone.
const planKept = 30 * time.Second

// planText returns the text of a plan, which is the cached part.
func (p *pages) planText(ctx context.Context, namespace, name string) (string, error) {
	plan, err := p.Plan(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	text, err := plan.Text()
	if err != nil {
		return "", fmt.Errorf("write the plan: %w", err)
	}
	return string(text), nil
}

// planned is the content of a plan's page.
type planned struct {
	Name        string // of the database, escaped
	Text, Error string
}

// servePlan waits for the cloud before it takes the slot for rendering, so that it does not block other pages.
func (p *pages) servePlan(w http.ResponseWriter, r *http.Request) {
	namespace, name := named(r)
	show := func(*http.Request, *view) answer {
		return answer{http.StatusNotFound, p.failure, fromPlan, "Not found", notWatched}
	}
	if p.Cache.Target(namespace, name) != nil {
		text, err := p.plans.of(r.Context(), namespace, name, askLimit)
		show = func(*http.Request, *view) answer {
			content := planned{Name: url.PathEscape(name), Text: text}
			if err != nil {
				content.Error = err.Error()
			}
			return answer{http.StatusOK, p.plan, fromPlan, "What would be decided now for " + namespace + "/" + name, content}
		}
	}
	p.serve(show)(w, r)
}
