package k8s

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	pulseEvery = 5 * time.Second
	pulseAgain = time.Second     // after a beat that was missed
	pulseLimit = 3 * time.Second // for an answer: what takes longer is of no use to a sender who waits
	missedMost = 1               // beats in a row that may be missed
)

// pulse is whether the API server answered lately.
type pulse struct{ lost atomic.Bool }

// Reachable reports whether the API server answered lately. It is true before Run, for Connect has asked.
func (c *Cluster) Reachable() bool { return !c.pulse.lost.Load() }

// feel asks again and again for what storing a notification needs as well: our rights, our resource, and etcd behind it.
func (c *Cluster) feel(ctx context.Context) {
	missed := 0
	for {
		pause := pulseEvery
		err := c.beat(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			missed = 0
			if c.pulse.lost.Swap(false) {
				c.log.Info("the API server answers again")
			}
		default:
			missed++
			pause = pulseAgain
			if missed > missedMost && !c.pulse.lost.Swap(true) {
				c.log.Error("the API server does not answer: nothing can be stored", zap.Error(err))
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (c *Cluster) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pulseLimit)
	defer cancel()
	_, err := c.autopilotsIn(c.namespaces[0]).List(ctx, metav1.ListOptions{Limit: 1})
	return wrapError(err, "list RdsAutopilots")
}
