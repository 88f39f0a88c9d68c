// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/mcsps/rds-autopilot/autopilot"
)

const (
	planKept  = 30 * time.Second // and shown to whoever asks for the same
	planLimit = 15 * time.Second // for those before it and for the cloud
)

// plans asks for one plan at a time and keeps each for a while: people who reload cost the cloud nothing.
type plans struct {
	ask  func(ctx context.Context, namespace, name string) (*autopilot.Plan, error)
	now  func() time.Time
	slot chan struct{} // held by whoever reads or writes kept
	kept map[[2]string]kept
}

type kept struct {
	text  string
	err   error
	until time.Time
}

func (p *plans) of(ctx context.Context, namespace, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, planLimit)
	defer cancel()
	select {
	case p.slot <- struct{}{}:
		defer func() { <-p.slot }()
	case <-ctx.Done():
		return "", errors.New("others wait for plans too; try again")
	}
	key := [2]string{namespace, name}
	for k, last := range p.kept {
		if p.now().After(last.until) {
			delete(p.kept, k)
		}
	}
	if last, ok := p.kept[key]; ok {
		return last.text, last.err
	}
	text, err := p.text(ctx, namespace, name)
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) { // else the one who asked has gone
		p.kept[key] = kept{text, err, p.now().Add(planKept)}
	}
	return text, err
}

func (p *plans) text(ctx context.Context, namespace, name string) (string, error) {
	plan, err := p.ask(ctx, namespace, name)
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
	namespace, name := chi.URLParam(r, "namespace"), chi.URLParam(r, "name")
	show := func(*http.Request, *view) answer {
		return answer{http.StatusNotFound, p.failure, fromPlan, "Not found", notWatched}
	}
	if p.Cache.Target(namespace, name) != nil {
		text, err := p.plans.of(r.Context(), namespace, name)
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
