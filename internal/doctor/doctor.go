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

// State is what came of a check.
type State string

// The states of a Result.
const (
	OK      State = "ok"
	Warning State = "warning" // it works, and somebody should know
	Differs State = "differs" // from what is assumed, and is met all the same
	Failed  State = "FAILED"
	Unseen  State = "unseen" // could not be seen
)

// Result is one line of the answer.
type Result struct {
	Check string `json:"check"`
	State State  `json:"state"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // what to do about it, one sentence
}

// String is one line, and one more with what to do.
func (r Result) String() string {
	text := fmt.Sprintf("%-8s %-20s %s\n", r.State, r.Check, r.Text)
	if r.Do != "" && r.State != OK {
		text += fmt.Sprintf("%-8s %-20s → %s\n", "", "", r.Do)
	}
	return text
}

// Options are what is looked at, and how.
type Options struct {
	app.Options // as serve has them; Env, PublicURL, Log, Now and CloudRate are needed

	Kube            *rest.Config // nil: KubeErr says why there is none
	KubeErr         error
	Namespace, Name string       // of the database; without a name no alarm is raised
	Listen          net.Listener // receives messages instead of the running service, if not nil
	// Keep keeps the body of a message under a file's name; nil: none is kept.
	Keep func(name string, body []byte) error
	// Wait is how long a message is waited for. All other waits are parts of it.
	Wait time.Duration

	Report   func(Result) // gets each result as soon as it is known
	Progress func(string) // gets a line now and then while there is nothing to report

	// LookUp and Web look at the public URL; nil is the system's resolver, and a client of our own.
	LookUp func(ctx context.Context, host string) ([]netip.Addr, error)
	Web    *http.Client
}

// Check is one question.
type Check struct {
	ID    string
	Asks  string   // what it asks, as docs/doctor.md has it
	Needs []string // checks without whose success there is no answer
	run   func(*examination, context.Context) []Result
}

// Checks returns all of them, in their order. Behind them come the assumptions, by their own ids.
func Checks() []Check {
	const database = "database"
	return []Check{
		{"credentials", "Does the cloud let us in?", nil, (*examination).checkCredentials},
		{"region", "Which region and project is it?", []string{"credentials"}, (*examination).checkRegion},
		{"endpoints", "Where are SMN, Cloud Eye and RDS, and how were they found?", []string{"credentials"}, (*examination).checkEndpoints},
		{"clock", "Is our clock the cloud's?", []string{"credentials"}, (*examination).checkClock},
		{"kubernetes", "Does the Kubernetes API answer, and serve both kinds?", nil, (*examination).checkKubernetes},
		{"crds", "Do the CRDs have all fields of this version?", []string{"kubernetes"}, (*examination).checkCRDs},
		{"rbac", "May we do all that serve does?", []string{"kubernetes"}, (*examination).checkRBAC},
		{"lease", "Does a replica lead?", []string{"kubernetes"}, (*examination).checkLease},
		{"leftovers", "Did an earlier run leave anything?", []string{"credentials"}, (*examination).checkLeftovers},
		{"rights-rds", "May we list instances and flavors?", []string{"credentials"}, (*examination).checkRightsRDS},
		{"rights-cloud-eye", "May we list rules, metrics, data and quotas?", []string{"credentials"}, (*examination).checkRightsCES},
		{"rights-smn", "May we list topics and subscriptions?", []string{"credentials"}, (*examination).checkRightsSMN},
		{"quotas", "Is there room for more rules and topics?", []string{"credentials"}, (*examination).checkQuotas},
		{database, "Is the database there, and ACTIVE?", []string{"kubernetes", "rights-rds"}, (*examination).checkDatabase},
		{"public-url", "Is the public URL a public one?", nil, (*examination).checkPublicURL},
		{"public-url-answer", "What answers there?", nil, (*examination).checkAnswer},
		{"topic", "Can a topic be made?", []string{"credentials"}, (*examination).checkTopic},
		{"subscription", "Does the confirmation arrive, and confirm?", []string{"topic"}, (*examination).checkSubscription},
		{"rule", "Can a rule be made and changed?", []string{"topic", database}, (*examination).checkRule},
		{"alarm", "Does a signed alarm arrive?", []string{"rule", "subscription"}, (*examination).checkAlarm},
		{"removed", "Is all of it removed again?", []string{"credentials"}, (*examination).checkRemoved},
	}
}

// Run makes all checks and reports their results. It returns those that failed. What it makes in the cloud and in the cluster is
// removed before it returns, also if ctx ends meanwhile.
func Run(ctx context.Context, o Options) (failed []Result) {
	x := newExamination(o)
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
		report(Result{Check: "capture", State: Failed, Text: x.keepErr.Error(), Do: "Give --capture a directory with room, and run doctor again"})
	}
	if ctx.Err() != nil {
		report(Result{Check: "interrupted", State: Failed, Text: "It was ended before it was through"})
		return failed
	}
	for _, a := range Assumptions() {
		report(x.judge(a))
	}
	return failed
}

// examine makes one check, if what it needs is there.
func (x *examination) examine(ctx context.Context, c Check) []Result {
	for _, need := range c.Needs {
		if r, done := x.results[need]; done && (r.State == Failed || r.State == Unseen) {
			return []Result{{State: Unseen, Text: fmt.Sprintf("Not looked at, because of %s", need)}}
		}
	}
	return c.run(x, ctx)
}

func ok(format string, args ...any) []Result {
	return []Result{{State: OK, Text: fmt.Sprintf(format, args...)}}
}

func result(state State, do, format string, args ...any) []Result {
	return []Result{{State: state, Text: strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "), Do: do}} // joined errors have lines
}
