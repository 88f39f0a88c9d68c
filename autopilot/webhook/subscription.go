package webhook

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// storeSubscription notes a confirmation or cancellation; the leader looks at the subscription list when it sees it.
func (r *Receiver) storeSubscription(ctx context.Context, target *v1alpha1.RdsAutopilot, e smn.Envelope, ok result) (result, error) {
	return r.store(ctx, target, e, func(in v1alpha1.Intake) (v1alpha1.Intake, result) {
		sig, res := subscriptionSignal(in, e, r.Now())
		if res != resultStored {
			return in, res
		}
		next := *in.DeepCopy()
		next.Subscription = sig
		return next, ok
	})
}

// subscriptionSignal is what would be stored: nothing that is stored already, and nothing that was signed before it.
// Else two recorded messages, sent in turn, would keep everybody busy.
func subscriptionSignal(in v1alpha1.Intake, e smn.Envelope, now time.Time) (*v1alpha1.SubscriptionSignal, result) {
	if was := in.Subscription; was != nil {
		switch {
		case was.MessageID == e.MessageID:
			return nil, resultDuplicate
		case was.SentTime != nil && e.Time.Before(was.SentTime.Time):
			return nil, resultStale
		}
	}
	sent := metav1.NewMicroTime(e.Time)
	return &v1alpha1.SubscriptionSignal{
		Type: string(e.Type), MessageID: e.MessageID, SentTime: &sent, ReceivedTime: metav1.NewMicroTime(now.Truncate(time.Microsecond)),
	}, resultStored
}

// TopicPrefix returns an Options.OurTopics for URNs of that project, region and prefix of names.
func TopicPrefix(region, project, prefix string) func(urn string) bool {
	want := "urn:smn:" + region + ":" + project + ":" + prefix
	return func(urn string) bool { return strings.HasPrefix(urn, want) }
}
