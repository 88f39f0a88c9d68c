// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// ReplicaPatience is how long a primary waits for its read replicas to grow. The cloud needs 3 to 5 minutes for a
// volume.
const ReplicaPatience = 10 * time.Minute

// GrowthAnswer is the cloud's answer to the request to grow one instance.
type GrowthAnswer int

// The answers.
const (
	GrowthSettled    GrowthAnswer = iota // nothing to wait for: the instance has the size, or the cloud refuses it
	GrowthOutOfOrder                     // the cloud refuses it until another instance has grown (DBS.200308)
	GrowthUnderWay                       // it has begun, the instance is busy, or the cloud gave no clear answer
)

// NextToGrow returns the id of the instance that the cloud should be asked next to grow for an intent: a read replica
// or the primary. answers holds the cloud's answers of this round by instance id. If the id is empty, the round asks
// for no more, and waitsFor holds the replicas that the primary waits for. NextToGrow is a pure function.
//
// The manual says that a replica must not be smaller than its primary, and the cloud's list of errors says the
// contrary. So a replica grows first, and whichever instance the cloud refuses as out of order grows last. What is done
// shows in the sizes of the instances, so a restart loses nothing.
func (c Case) NextToGrow(i v1alpha1.Intent, answers map[string]GrowthAnswer) (id string, waitsFor []Replica) {
	primary, isAsked := answers[c.Instance.ID]
	switch {
	case isAsked && primary != GrowthOutOfOrder:
		return "", nil
	case !isAsked && c.isPrimaryFirst(i):
		return c.Instance.ID, nil
	}
	for _, r := range c.Instance.SmallerReplicas(Gigabytes(i.To)) {
		answer, ok := answers[r.ID]
		switch {
		case r.Obstacle(Gigabytes(i.To)) != "":
		case !ok:
			return r.ID, nil
		case answer == GrowthUnderWay:
			waitsFor = append(waitsFor, r)
		}
	}
	if isAsked || len(waitsFor) > 0 {
		return "", waitsFor
	}
	return c.Instance.ID, nil
}

// isPrimaryFirst reports whether a growth of the primary cannot wait for its replicas: it has waited for 10 minutes, or
// the database is read-only or nearly so.
func (c Case) isPrimaryFirst(i v1alpha1.Intent) bool {
	if i.Kind != v1alpha1.KindVolume || c.Now.Sub(i.DecisionTime.Time) >= ReplicaPatience {
		return true
	}
	return c.IsNearlyReadOnly(Evidence{}) || slices.ContainsFunc(c.Alarms, func(a Alarm) bool {
		return a.Metric == v1alpha1.MetricStorage && c.IsNearlyReadOnly(a.Evidence)
	})
}

// ReplicaStep is what happens to a read replica when its primary grows.
type ReplicaStep string

// The steps.
const (
	ReplicaStays        ReplicaStep = "Stays"        // it has the size of the primary, or more
	ReplicaGrowsFirst   ReplicaStep = "GrowsFirst"   // the autopilot grows it before the primary
	ReplicaGrowsAfter   ReplicaStep = "GrowsAfter"   // the autopilot grows it after the primary, which cannot wait
	ReplicaStaysSmaller ReplicaStep = "StaysSmaller" // the autopilot does not grow it, and reports ReplicaSmaller
	ReplicaSizeUnknown  ReplicaStep = "SizeUnknown"  // the cloud reports no size, so the autopilot leaves it alone
)

// Obstacle returns why the autopilot does not grow the replica to that many GB: the administrator forbids it, or a cap
// of the replica's own. It returns an empty text if nothing prevents the growth.
func (r Replica) Obstacle(sizeGB int) string {
	switch {
	case r.IsForbidden:
		return "--allowed-instances does not list it"
	case r.MaxGB > 0 && sizeGB > r.MaxGB:
		return fmt.Sprintf("the cap of %s is %d GB", r.ManagedBy, r.MaxGB)
	}
	return ""
}

// ReplicaSteps returns what happens to each read replica by id when the primary grows by an intent. It is a pure
// function. It assumes that the cloud refuses nothing.
func (c Case) ReplicaSteps(i v1alpha1.Intent) map[string]ReplicaStep {
	first := make(map[string]GrowthAnswer)
	for id, _ := c.NextToGrow(i, first); id != "" && id != c.Instance.ID; id, _ = c.NextToGrow(i, first) {
		first[id] = GrowthSettled
	}
	steps := make(map[string]ReplicaStep)
	for _, r := range c.Instance.Replicas {
		steps[r.ID] = ReplicaStays
		if r.VolumeGB == 0 {
			steps[r.ID] = ReplicaSizeUnknown
		}
	}
	for _, r := range c.Instance.SmallerReplicas(Gigabytes(i.To)) {
		_, isFirst := first[r.ID]
		switch {
		case c.Spec.Apply != v1alpha1.ApplyCloud || r.Obstacle(Gigabytes(i.To)) != "":
			steps[r.ID] = ReplicaStaysSmaller
		case isFirst:
			steps[r.ID] = ReplicaGrowsFirst
		default:
			steps[r.ID] = ReplicaGrowsAfter
		}
	}
	return steps
}

// ReplicasToFollow returns the read replicas that must grow to the size of their primary, because the autopilot has
// grown the primary within the last hour, they are smaller, and nothing prevents it.
func (c Case) ReplicasToFollow() []Replica {
	isOurs := c.Instance != nil && c.Off == (Off{}) && c.Mode == v1alpha1.ModeAuto && c.ClaimedBy == ""
	isGrowing := slices.ContainsFunc(c.Status.Intents(),
		func(i *v1alpha1.Intent) bool { return i.Kind == v1alpha1.KindVolume })
	if !isOurs || isGrowing || c.Spec.Apply != v1alpha1.ApplyCloud || RecentGrowth(c.Status.Changes, c.Now).IsZero() {
		return nil
	}
	size := c.Instance.VolumeGB
	return slices.DeleteFunc(c.Instance.SmallerReplicas(size), func(r Replica) bool { return r.Obstacle(size) != "" })
}

// SmallerReplicas returns the read replicas whose volume is known to be smaller than that, sorted by id.
func (i Instance) SmallerReplicas(sizeGB int) []Replica {
	smaller := slices.Clone(i.Replicas)
	smaller = slices.DeleteFunc(smaller, func(r Replica) bool { return r.VolumeGB == 0 || r.VolumeGB >= sizeGB })
	slices.SortFunc(smaller, func(a, b Replica) int { return strings.Compare(a.ID, b.ID) })
	return smaller
}

// ReplicaSizes names replicas with their sizes, such as "reader (90 GB), reports (100 GB)".
func ReplicaSizes(replicas []Replica) string {
	var names []string
	for _, r := range replicas {
		names = append(names, fmt.Sprintf("%s (%d GB)", r.Name, r.VolumeGB))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
