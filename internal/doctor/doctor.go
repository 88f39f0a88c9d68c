// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// State is the outcome of a step.
type State string

// The states of a Line.
const (
	OK      State = "ok"
	Note    State = "note" // it may be wrong: a later step decides
	Failed  State = "FAILED"
	Skipped State = "skipped"
)

// Line is the result of one step.
type Line struct {
	Step  string
	State State
	Text  string
	Do    string // the next step of the reader, if the step has not succeeded
}

// String returns the result as one line, and a second one with what to do.
func (l Line) String() string {
	text := fmt.Sprintf("%-8s %-10s %s\n", l.State, l.Step, l.Text)
	if l.Do != "" {
		text += fmt.Sprintf("%-8s %-10s → %s\n", "", "", l.Do)
	}
	return text
}

// Options configure Run.
type Options struct {
	app.Options // as for serve; Env, PublicURL, Log, Now and CloudRate are required

	Kube     *rest.Config
	Instance string       // the id of the instance to rehearse with; empty means the first one that nobody manages
	Report   func(Line)   // is called with each result as soon as it is known
	Web      *http.Client // sends a request to the public URL; nil means a client that follows no redirect
}

// doctor is one run.
type doctor struct {
	Options
	namespace string // the service's
	kube      *k8s.Cluster
	cloud     *otc.Cloud
	instances []otc.Instance
	rules     []otc.Rule
	url       Line // what a request to the public URL has found

	seen    *v1alpha1.RdsAutopilot // the rehearsal as last read
	ruleIDs map[string]bool        // all rules that its status has ever named
	failed  bool
}

// Run runs all steps, and returns whether all have succeeded. If ctx ends, it runs no further step. In any case it
// deletes the RdsAutopilot that it has created, and waits until the service has removed its rules.
func Run(ctx context.Context, o Options) bool {
	d := &doctor{Options: o, ruleIDs: map[string]bool{}}
	if d.Web == nil {
		noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		d.Web = &http.Client{Timeout: answerLimit, CheckRedirect: noRedirect}
	}
	inCluster := d.step(ctx, "kubernetes", d.connectKube) && d.step(ctx, "rights", d.checkRights)
	if d.kube != nil {
		defer d.kube.Close()
	}
	inCloud := d.step(ctx, "login", d.logIn) && d.step(ctx, "lists", d.readLists)
	if inCloud {
		d.step(ctx, "hosts", d.checkHosts)
	}
	d.step(ctx, "url", d.checkURL)
	ready := inCloud && d.step(ctx, "quota", d.checkQuota)
	if ready && inCluster && d.step(ctx, "leftover", d.removeRehearsal) && d.step(ctx, "instance", d.chooseInstance) {
		d.rehearse(ctx)
	} else if ctx.Err() == nil {
		d.report(Line{"rehearsal", Skipped, "A step before it has failed", ""})
	}
	if ctx.Err() != nil {
		d.report(Line{"doctor", Failed, "Interrupted", ""})
	}
	return !d.failed
}

// step runs one step and reports its result. It returns whether the next steps can run.
func (d *doctor) step(ctx context.Context, name string, run func(context.Context) Line) bool {
	if ctx.Err() != nil {
		return false
	}
	l := run(ctx)
	if ctx.Err() != nil && l.State == Failed {
		return false // because of the interruption
	}
	l.Step = name
	d.report(l)
	return l.State != Failed
}

func (d *doctor) report(l Line) {
	l.Text = strings.ReplaceAll(l.Text, "\n", "; ") // a joined error has several lines
	d.failed = d.failed || l.State == Failed || l.State == Skipped
	d.Report(l)
}

func ok(format string, args ...any) Line { return Line{State: OK, Text: fmt.Sprintf(format, args...)} }

func failed(do, format string, args ...any) Line {
	return Line{State: Failed, Text: fmt.Sprintf(format, args...), Do: do}
}

// until reports whether done returns true within that time.
func (d *doctor) until(ctx context.Context, most time.Duration, done func() bool) bool {
	for latest := d.Now().Add(most); ctx.Err() == nil; {
		switch {
		case done():
			return true
		case !d.Now().Before(latest):
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return false
}
