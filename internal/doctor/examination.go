// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// progressEach is how long there may be nothing to read.
const progressEach = 15 * time.Second

// connectLimit is for the cloud and the cluster to let us in.
const connectLimit = 15 * time.Second

// examination is one run: what was found so far.
type examination struct {
	Options
	results map[string]Result // by check

	api    *otc.Cloud // nil: apiErr says why
	apiErr error
	kube   *cluster // nil: kubeErr says why
	owner  string   // first characters of the cluster's id: what is named so, is ours to remove

	instance *otc.Instance // of the database
	data     measurements

	mailbox    mailbox
	mailboxErr error // of the last look into it
	keepErr    error
	topicURN   string
	made       otc.Rule // as it was sent
	seen       observations

	mu      sync.Mutex
	answers []otc.Answer
}

// observations are what the way of a message has shown, as far as it came.
type observations struct {
	confirmation, notification *message
	second                     *message // the notification, sent again
	messages                   []*message
	again                      *bool  // whether a confirmation was sent again
	repeated                   *bool  // whether a notification was sent again
	topicAgain                 error  // of creating the topic twice
	existsCode                 string // of Subscribe, where the subscription existed
	subscribedTwice            bool
	subscription               *otc.Subscription // as it is listed
	ruleNew, ruleAlarm         *otc.Rule         // as listed when it was made, and in alarm
	ruleLater, ruleRewritten   *otc.Rule
	waited                     time.Duration // for the rule's alarm
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

// connect opens the ways into the cloud and into the cluster. What keeps it from that is for the checks to say.
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

// lastAnswer is the cloud's newest to one operation.
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

// prefix is how the names of all begin that this cluster's doctor makes in the cloud. The service's own begin with autopilot_.
func (x *examination) prefix() string { return "autopilot-doctor_" + x.owner + "_" }

func randomName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// until asks again and again until done, for that long. It tells of progress.
func (x *examination) until(ctx context.Context, most time.Duration, what string, done func(context.Context) bool) bool {
	begin := x.Now()
	told := begin
	pause := min(max(most/400, 50*time.Millisecond), 3*time.Second)
	for !done(ctx) {
		now := x.Now()
		if ctx.Err() != nil || now.Sub(begin) >= most {
			return false
		}
		if now.Sub(told) >= progressEach {
			told = now
			x.Progress(fmt.Sprintf("waiting for %s, %s of at most %s%s", what, now.Sub(begin).Truncate(time.Second), most, suffix(": ", errorText(x.mailboxErr))))
		}
		sleep(ctx, pause)
	}
	return true
}

// pause waits for that long.
func (x *examination) pause(ctx context.Context, d time.Duration, what string) {
	x.until(ctx, d, what, func(context.Context) bool { return false })
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// keepMessages takes in what was captured since.
func (x *examination) keepMessages(captured []v1alpha1.CapturedMessage) {
	for _, c := range captured[min(len(x.seen.messages), len(captured)):] {
		m := newMessage(c)
		x.seen.messages = append(x.seen.messages, m)
		if x.Keep != nil && x.keepErr == nil {
			x.keepErr = x.Keep(fmt.Sprintf("%02d-%s.json", len(x.seen.messages), m.kind()), []byte(m.Body+"\n"))
		}
		switch m.text("type") {
		case "SubscriptionConfirmation":
			if x.seen.confirmation == nil || x.seen.confirmation.Result != "confirmed" {
				x.seen.confirmation = m
			}
		case "Notification":
			if x.seen.notification == nil {
				x.seen.notification = m
			}
		}
	}
}
