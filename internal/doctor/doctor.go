// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out whether an installation can do its job. It reads what the service needs, and then rehearses
// with the running service: it creates an RdsAutopilot that only recommends, and waits for its alarm and its decision.
// It changes nothing in the cloud itself: the running service creates and removes topic, subscription and rules.
package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The states of a Line.
const (
	OK     = "ok"
	Note   = "note" // it may be wrong: a later step decides
	Failed = "FAILED"
)

// Line is the result of one step.
type Line struct {
	Step, State, Text string
	Do                string // what the reader can do, if the step has not succeeded
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
	Web      *http.Client // sends a request to the public URL
}

type doctor struct {
	Options
	namespace string // the service's
	kube      *k8s.Cluster
	cloud     *otc.Cloud
	instances []autopilot.Instance
	rules     []otc.Rule
	url       Line // what a request to the public URL has found

	seen    *v1alpha1.RdsAutopilot // the rehearsal as last read
	ruleIDs map[string]bool        // all rules that its status has ever named
	lost    error                  // why the rehearsal can no longer be read
	failed  bool
}

// Run runs all steps, and returns whether all have succeeded. If ctx ends, it runs no further step. In any case it
// deletes the RdsAutopilot that it has created, and waits until the service has removed its rules.
func Run(ctx context.Context, o Options) bool {
	d := &doctor{Options: o, ruleIDs: map[string]bool{}}
	inCluster := d.step(ctx, "kubernetes", d.connectKube)
	if d.kube != nil {
		defer d.kube.Close()
	}
	inCloud := d.step(ctx, "login", d.logIn)
	if inCloud {
		d.step(ctx, "hosts", d.checkHosts)
	}
	d.step(ctx, "url", d.checkURL)
	inCloud = inCloud && d.step(ctx, "lists", d.readLists) && d.step(ctx, "quota", d.checkQuota)
	if inCloud && inCluster && d.step(ctx, "leftover", d.removeRehearsal) && d.step(ctx, "instance", d.chooseInstance) {
		_ = d.step(ctx, "created", d.create) && d.step(ctx, "armed", d.waitArmed) && d.step(ctx, "topic", d.checkTopic) &&
			d.step(ctx, "alarm", d.waitSignal) && d.step(ctx, "decision", d.waitDecision)
		d.step(context.WithoutCancel(ctx), "removed", d.removeRehearsal)
	}
	return !d.failed && ctx.Err() == nil
}

func (d *doctor) step(ctx context.Context, name string, run func(context.Context) Line) bool {
	if ctx.Err() != nil {
		return false
	}
	d.lost = nil
	l := run(ctx)
	if ctx.Err() != nil && l.State == Failed {
		return false // because of the interruption
	}
	if d.lost != nil { // what the step says about the RdsAutopilot is old
		l = failed(kubeAdvice(d.lost), "Cannot read the RdsAutopilot any more: %v", d.lost)
	}
	l.Step, l.Text = name, strings.ReplaceAll(l.Text, "\n", "; ") // a joined error has several lines
	d.failed = d.failed || l.State == Failed
	d.Report(l)
	return l.State != Failed
}

func ok(format string, args ...any) Line { return Line{State: OK, Text: fmt.Sprintf(format, args...)} }

func failed(do, format string, args ...any) Line {
	return Line{State: Failed, Text: fmt.Sprintf(format, args...), Do: do}
}

func until(ctx context.Context, most time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	return true
}
