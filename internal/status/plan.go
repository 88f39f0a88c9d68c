// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const planKept = 30 * time.Second // and shown to whoever asks for the same

// planText is what is kept of a plan.
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

// planned is the page of a plan.
type planned struct {
	Name        string // of the database, escaped
	Text, Error string
}

// servePlan waits for the cloud before a page is put together, so that others see theirs meanwhile.
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
