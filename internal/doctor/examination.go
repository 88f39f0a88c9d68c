// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// progressEach is the longest time without a line of output.
const progressEach = 15 * time.Second

// connectLimit is how long the logins to the cloud and to the cluster may take together.
const connectLimit = 15 * time.Second

// examination is the state of one run.
type examination struct {
	Options
	results map[string]Result // by check

	api    *otc.Cloud // nil after a failed login, with the reason in apiErr
	apiErr error
	kube   *cluster // nil if the connection failed, with the reason in KubeErr
	owner  string   // first characters of the cluster's ID; part of the names of our objects
	run    string   // name of this run; part of them too

	instance *otc.Instance // of the database
	data     measurements

	mailbox    mailbox
	mailboxErr error // of the last read
	keepErr    error
	topicURN   string
	made       otc.Rule // as it was sent
	seen       observations

	mu      sync.Mutex
	answers []otc.Answer
}

// observations are the facts that the run has collected about messages, subscription and rule.
type observations struct {
	intake                     v1alpha1.Intake // what the receiver has stored
	messages                   []*message      // as doctor's own receiver got them
	confirmation, notification *message        // the first of each kind
	second                     *message        // the notification, sent again
	again                      *bool           // whether SMN sent the confirmation again; nil if unknown
	repeated                   *bool           // whether SMN sent the notification again; nil if unknown
	topicAgain                 error           // of creating the topic a second time
	existsCode                 string          // error code of subscribing a second time
	subscribedTwice            bool
	subscription               *otc.Subscription // as listed
	ruleNew, ruleAlarm         *otc.Rule         // as listed after the creation and in alarm
	ruleLater, ruleRewritten   *otc.Rule
	waited                     time.Duration // until the rule was in alarm
}

func newExamination(o Options) *examination {
	x := &examination{results: map[string]Result{}}
	o.Observe = x.observe
	if o.LookUp == nil {
		o.LookUp = lookUp
	}
	if o.Web == nil {
		o.Web = webClient()
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	x.Options = o
	return x
}

// connect logs in to the cloud and to the cluster. The checks report its errors.
func (x *examination) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	x.api, x.apiErr = app.ConnectCloud(ctx, x.Options.Options, nil, false)
	x.owner = "local"
	if x.KubeErr == nil {
		x.kube, x.KubeErr = connectKube(ctx, x.Kube, x.Options.Options)
	}
	if x.kube != nil {
		x.owner = x.kube.clusterID[:min(len(x.kube.clusterID), 8)]
	}
}

func (x *examination) disconnect() {
	if local, is := x.mailbox.(*localMailbox); is {
		local.close()
	}
	if x.kube != nil {
		x.kube.api.Close()
	}
}

func (x *examination) observe(a otc.Answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answers = append(x.answers, a)
}

// lastAnswer returns the cloud's newest answer to an operation.
func (x *examination) lastAnswer(operation string) (found otc.Answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range x.answers {
		if a.Operation == operation {
			found = a
		}
	}
	return found
}

// prefix returns the prefix of all names in the cloud that this cluster's doctor uses. The service's own prefix is
// autopilot_.
func (x *examination) prefix() string { return "autopilot-doctor_" + x.owner + "_" }

func randomName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// until polls done for at most that long, and reports the progress. It returns whether done has returned true.
func (x *examination) until(ctx context.Context, most time.Duration, subject string,
	done func(context.Context) bool) bool {
	begin := x.Now()
	reported := begin
	pause := min(max(most/400, 50*time.Millisecond), 3*time.Second)
	for !done(ctx) {
		now := x.Now()
		if ctx.Err() != nil || now.Sub(begin) >= most {
			return false
		}
		if now.Sub(reported) >= progressEach {
			reported = now
			text := fmt.Sprintf("waiting for %s, %s of at most %s", subject, now.Sub(begin).Truncate(time.Second), most)
			if x.mailboxErr != nil {
				text += ": " + x.mailboxErr.Error()
			}
			x.Progress(text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return true
}

// confirmation returns the confirmation that the receiver has accepted, or nil.
func (x *examination) confirmation() *v1alpha1.SubscriptionSignal { return x.seen.intake.Subscription }

// alarm returns the alarm that the receiver has accepted, or nil.
func (x *examination) alarm() *v1alpha1.Signal {
	if len(x.seen.intake.Signals) == 0 {
		return nil
	}
	return &x.seen.intake.Signals[0]
}

// certHost returns the host of the certificate that has signed the last accepted message.
func (x *examination) certHost() string {
	u, err := url.Parse(x.seen.intake.SigningCertURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// pause waits for d.
func (x *examination) pause(ctx context.Context, d time.Duration, subject string) {
	x.until(ctx, d, subject, func(context.Context) bool { return false })
}

// keepMessages adds the messages that have arrived since the last call.
func (x *examination) keepMessages(all []*message) {
	for _, m := range all[min(len(x.seen.messages), len(all)):] {
		x.seen.messages = append(x.seen.messages, m)
		if x.Keep != nil && x.keepErr == nil {
			x.keepErr = x.Keep(fmt.Sprintf("%02d-%s.json", len(x.seen.messages), m.kind()), []byte(m.body+"\n"))
		}
		switch {
		case m.kind() == kindConfirmation && x.seen.confirmation == nil:
			x.seen.confirmation = m
		case m.kind() == kindNotification && x.seen.notification == nil:
			x.seen.notification = m
		}
	}
}
