package controller

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	eventRival         = "OperatorAutopilot"
	eventAutoscaling   = "CloudAutoscaling"
	eventObserve       = "Observe"      // the action of events about what others do, and of warnings
	autoscalingRecheck = 12 * time.Hour // at least, and at most twice that
)

// warnOfRivals tells of others who change the same database: the operator's own autopilot, which anybody can trigger,
// and the cloud's storage autoscaling, which is fine but should be known.
func (r *round) warnOfRivals(ctx context.Context, c autopilot.Case) {
	if r.rds.Spec.Endpoint != "" && r.first() {
		r.Cluster.Event(r.rds, r.rap, Event{Warning: true, Reason: eventRival, Action: eventObserve, Note: "spec.endpoint is set: the operator's own autopilot is on as well, and acts on messages that nobody verifies. Clear spec.endpoint"})
	}
	seen := r.next.Instance
	if c.Instance == nil || seen == nil || seen.Autoscaling != nil && r.now.Sub(seen.Autoscaling.CheckedTime.Time) < r.autoscalingDue() {
		return
	}
	if !r.sweep && meta.IsStatusConditionTrue(r.next.Conditions, v1alpha1.ConditionArmed) {
		return // an alarm must not wait for it: it is a call for each database
	}
	policy, err := r.Cloud.StoragePolicy(ctx, c.Instance.ID)
	if err != nil {
		r.log.Warn("read the cloud's storage autoscaling", zap.Error(err)) // nothing depends on it
		return
	}
	if policy == nil {
		return
	}
	policy.CheckedTime = metav1.NewTime(r.now.Truncate(time.Second))
	news := policy.On && (seen.Autoscaling == nil || !seen.Autoscaling.On)
	seen.Autoscaling = policy
	if news {
		r.Cluster.Event(r.rds, r.rap, Event{Reason: eventAutoscaling, Action: eventObserve, Note: fmt.Sprintf(
			"The cloud's own storage autoscaling is on: it acts at %d %% free, up to %d GB; the autopilot at %d %% used, up to %d GB. Whoever comes first acts; a size grown by the cloud is where the autopilot goes on from",
			policy.TriggerPercent, policy.LimitGB, autopilot.Threshold(c.Instance.VolumeGB, int(c.Spec.Storage.ThresholdPercent)), c.Spec.Storage.MaxGB)})
	}
}

// autoscalingDue is when to ask again. Databases that were armed together are not asked about together.
func (r *round) autoscalingDue() time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.rds.UID)) // never fails
	return autoscalingRecheck + time.Duration(h.Sum32())*time.Second%autoscalingRecheck
}

// first reports whether this process has not yet told of this Rds.
func (r *round) first() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told[r.rds.UID]
	r.told[r.rds.UID] = true
	return !told
}
