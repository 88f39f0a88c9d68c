// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// eventReplica is the event that the cloud began to grow a read replica.
const eventReplica = "GrowReplica"

// requestGrowth requests a stored growth of a primary with spec.apply: Cloud, and the growth of its read replicas, in
// the order that the domain decides. While the primary waits for a replica, the Rds is not patched either, because a
// running operator would grow the primary at once.
func (r *round) requestGrowth(ctx context.Context, c autopilot.Case,
	i v1alpha1.Intent) (patched record.Patched, err error) {
	answers := make(map[string]autopilot.GrowthAnswer)
	for {
		id, waitsFor := c.NextToGrow(i, answers)
		switch {
		case id == "" && len(waitsFor) > 0:
			patched.Cloud = record.WaitForReplicas(i, waitsFor)
			return patched, err
		case id == "":
			return patched, err
		case id != c.Instance.ID:
			answers[id] = r.growReplica(ctx, *c.Instance, id, i)
			continue
		}
		patched, err = r.requestChange(ctx, i)
		answers[id] = autopilot.GrowthSettled
		if patched.Cloud != nil && patched.Cloud.IsOutOfOrder {
			answers[id] = autopilot.GrowthOutOfOrder
		}
	}
}

// growReplica requests the size of an intent for one read replica. The size is absolute, so a repeated request changes
// nothing.
func (r *round) growReplica(ctx context.Context, primary autopilot.Instance, id string,
	i v1alpha1.Intent) autopilot.GrowthAnswer {
	log := r.log.With(zap.String("replica", id), zap.String("to", i.To))
	if err := r.confirmTarget(ctx); err != nil {
		log.Info("the cloud is not asked to grow a replica", zap.Error(err))
		return autopilot.GrowthSettled
	}
	jobID, err := r.cloud.Change(ctx, id, i)
	refusal, isRefused := errors.AsType[*autopilot.RefusedError](err)
	switch {
	case err == nil && jobID == "": // the list of instances is older than the growth
		return autopilot.GrowthSettled
	case err == nil:
		log.Info("the cloud has begun to grow a replica", zap.String("job", jobID))
		r.kube.Event(r.target, r.rap, autopilot.Event{
			Change: true, Reason: eventReplica, Action: string(i.Kind),
			Note: fmt.Sprintf("The cloud grows the read replica %s of %s to %s GB", replicaName(primary, id), primary.Name,
				i.To),
		})
		return autopilot.GrowthUnderWay
	case isRefused && refusal.IsOutOfOrder:
		log.Info("the cloud grows the replica only after its primary", zap.Error(err))
		return autopilot.GrowthOutOfOrder
	case isRefused && refusal.Reason != autopilot.ReasonInstanceBusy:
		log.Warn("the cloud refuses to grow a replica", zap.Error(err))
		return autopilot.GrowthSettled
	}
	log.Info("the replica is busy, or the cloud gave no clear answer", zap.Error(err))
	return autopilot.GrowthUnderWay
}

// growFollowers grows the read replicas that are smaller than their primary after a growth of ours. Each round tries
// again for an hour.
func (r *round) growFollowers(ctx context.Context, c autopilot.Case) {
	for _, replica := range c.ReplicasToFollow() {
		size := v1alpha1.Intent{Kind: v1alpha1.KindVolume, From: strconv.Itoa(replica.VolumeGB),
			To: strconv.Itoa(c.Instance.VolumeGB)}
		r.growReplica(ctx, *c.Instance, replica.ID, size)
	}
}

func replicaName(primary autopilot.Instance, id string) string {
	for _, replica := range primary.Replicas {
		if replica.ID == id {
			return replica.Name
		}
	}
	return id
}
