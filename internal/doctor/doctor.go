// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/app"
)

// State is the outcome of a check.
type State string

// The states of a Result.
const (
	OK      State = "ok"
	Warning State = "warning" // it works, but the user should know the text
	Differs State = "differs" // an assumption is wrong, and the service works nevertheless
	Failed  State = "FAILED"
	Unseen  State = "unseen" // the check could not run
)

// Result is one line of the output.
type Result struct {
	Check string `json:"check"`
	State State  `json:"state"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // the next step, one sentence
}

// String returns the result as a line, and a second line with the next step.
func (r Result) String() string {
	text := fmt.Sprintf("%-8s %-20s %s\n", r.State, r.Check, r.Text)
	if r.Do != "" && r.State != OK {
		text += fmt.Sprintf("%-8s %-20s → %s\n", "", "", r.Do)
	}
	return text
}

// Options configure Run.
type Options struct {
	app.Options // as for serve; Env, PublicURL, Now and CloudRate are required

	Kube            *rest.Config // nil: KubeErr says why there is none
	KubeErr         error
	Namespace, Name string       // of the database; without a name, Run raises no alarm
	Listen          net.Listener // if not nil, doctor receives the messages on it in place of the running service
	// Keep saves the body of a message under a file name; may be nil.
	Keep func(name string, body []byte) error
	// Wait is how long to wait for an alarm. All other waits are fractions of it.
	Wait time.Duration

	Report   func(Result) // is called with each result as soon as it is known
	Progress func(string) // is called with a line every 15 seconds while there is nothing to report; may be nil

	// LookUp and Web check the public URL; nil means the system's resolver and a default client.
	LookUp func(ctx context.Context, host string) ([]netip.Addr, error)
	Web    *http.Client
}

// Check is one question to the cloud, the cluster or the public URL.
type Check struct {
	ID    string
	Asks  string   // the question, as in docs/doctor.md
	Needs []string // checks that must succeed first
	run   func(*examination, context.Context) []Result
}

// Checks returns all checks in their order. Run reports the assumptions after them, under their own IDs.
func Checks() []Check {
	const database = "database"
	return []Check{
		{"credentials", "Does the cloud accept our credentials?", nil, (*examination).checkCredentials},
		{"region", "Which region and project is it?", []string{"credentials"}, (*examination).checkRegion},
		{"endpoints", "Where are SMN, Cloud Eye and RDS, and how were they found?", []string{"credentials"},
			(*examination).checkEndpoints},
		{"clock", "Does our clock agree with the cloud's?", []string{"credentials"}, (*examination).checkClock},
		{"kubernetes", "Does the Kubernetes API answer, and serve both kinds?", nil, (*examination).checkKubernetes},
		{"crds", "Do the CRDs have all fields of this version?", []string{"kubernetes"}, (*examination).checkCRDs},
		{"rbac", "Do we have all rights that serve needs?", []string{"kubernetes"}, (*examination).checkRBAC},
		{"lease", "Does a replica lead?", []string{"kubernetes"}, (*examination).checkLease},
		{"leftovers", "Did an earlier run leave objects behind?", []string{"credentials"}, (*examination).checkLeftovers},
		{"rights-rds", "May we list instances and flavors?", []string{"credentials"}, (*examination).checkRightsRDS},
		{"rights-cloud-eye", "May we list rules, metrics, data and quotas?", []string{"credentials"},
			(*examination).checkRightsCES},
		{"rights-smn", "May we list topics and subscriptions?", []string{"credentials"}, (*examination).checkRightsSMN},
		{"quotas", "Do the quotas allow more rules and topics?", []string{"credentials"}, (*examination).checkQuotas},
		{database, "Does the database exist, and is it ACTIVE?", []string{"kubernetes", "rights-rds"},
			(*examination).checkDatabase},
		{"rights-change", "May we change the database's instance, if --allow-apply is Cloud?", []string{database},
			(*examination).checkRightsChange},
		{"public-url", "Does the public URL have a public address?", nil, (*examination).checkPublicURL},
		{"public-url-answer", "Does a receiver answer at the public URL?", nil, (*examination).checkAnswer},
		{"topic", "Can we create a topic?", []string{"credentials"}, (*examination).checkTopic},
		{"subscription", "Does a confirmation arrive, and does it confirm?", []string{"topic"},
			(*examination).checkSubscription},
		{"rule", "Can we create and change a rule?", []string{"topic", database}, (*examination).checkRule},
		{"alarm", "Does a signed alarm arrive?", []string{"rule", "subscription"}, (*examination).checkAlarm},
		{"removed", "Is everything removed again?", []string{"credentials"}, (*examination).checkRemoved},
	}
}

// Run runs all checks, reports their results and returns those that failed. Before it returns, it removes everything
// that it has created in the cloud and in the cluster, even if ctx has ended.
func Run(ctx context.Context, o Options) (failed []Result) {
	x := newExamination(o)
	x.run = x.newRun()
	ctx, cancel := context.WithTimeout(ctx, x.limit())
	defer cancel()
	report := func(r Result) {
		if r.State == Failed {
			failed = append(failed, r)
		}
		x.results[r.Check] = r
		o.Report(r)
	}
	x.connect(ctx)
	defer x.disconnect()
	for _, c := range Checks() {
		if ctx.Err() != nil && c.ID != "removed" {
			continue
		}
		for _, r := range x.examine(ctx, c) {
			r.Check = c.ID
			report(r)
		}
	}
	if x.keepErr != nil {
		report(Result{Check: "capture", State: Failed, Text: x.keepErr.Error(),
			Do: "Give --capture a directory with free space, and run doctor again"})
	}
	if ctx.Err() != nil {
		report(Result{Check: "interrupted", State: Failed, Text: "Doctor was interrupted before the last check"})
		return failed
	}
	for _, a := range Assumptions() {
		report(x.judge(a))
	}
	return failed
}

// examine runs one check, unless a check that it needs has failed or was not reached.
func (x *examination) examine(ctx context.Context, c Check) []Result {
	for _, need := range c.Needs {
		if r, done := x.results[need]; !done || r.State == Failed || r.State == Unseen {
			return []Result{{State: Unseen, Text: "Skipped, because it needs the check " + need}}
		}
	}
	return c.run(x, ctx)
}

// ok returns a result with that text.
func ok(format string, args ...any) []Result {
	return []Result{{State: OK, Text: fmt.Sprintf(format, args...)}}
}

// result returns a result with a next step and a text.
func result(state State, do, format string, args ...any) []Result {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") // a joined error has several lines
	return []Result{{State: state, Text: text, Do: do}}
}
