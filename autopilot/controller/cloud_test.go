// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

var errNoAnswer = errors.New("no answer")

// cloudState is the state of the cloud in a world.
type cloudState struct {
	inst    *autopilot.Instance
	usedGB  float64
	cpu     float64
	delay   time.Duration                   // of the measurements
	states  map[string]autopilot.AlarmState // of the rules of the database, by id; they bear its mark
	watched string                          // the instance that the rules watch
	owners  map[string]string               // other objects that manage an instance, by its id
	topic   v1alpha1.Topic                  // of the installation
	removes []time.Time                     // the age that each removal of rules has asked for
	wal     autopilot.WAL
	walErr  error
	walFrom []string              // the dimensions of the reads of WAL
	onWAL   func(context.Context) // runs while WAL is read
	begun   []string              // sizes and flavors of the jobs that have begun

	unreachable      bool
	statesUnreadable bool
	noCatalogue      bool
	onTopic          func(context.Context) error // runs while the topic is checked
	// Unless readBefore is zero, instances can be read only from a list that began before it.
	readBefore time.Time
	onInstance func()                                       // runs while a round reads the instance
	onChange   func(context.Context, v1alpha1.Change) error // runs while a round requests a change
}

// cloud implements Cloud on the state of a world.
type cloud struct{ *world }

func (c cloud) Instance(_ context.Context, _ string, notBefore time.Time) (*autopilot.Instance, error) {
	c.mu.Lock()
	onInstance := c.onInstance
	c.mu.Unlock()
	if onInstance != nil {
		onInstance()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable || !c.readBefore.IsZero() && notBefore.After(c.readBefore) {
		return nil, errNoAnswer
	}
	i := *c.inst
	i.Replicas = slices.Clone(i.Replicas)
	return &i, nil
}

func (c cloud) AlarmStates(context.Context, time.Time) (map[string]autopilot.AlarmState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable || c.statesUnreadable {
		return nil, errNoAnswer
	}
	return maps.Clone(c.states), nil
}

func (c cloud) ListMaxAge() time.Duration { return time.Second }

func (c cloud) Points(context.Context, autopilot.Instance, autopilot.EvidenceRequest) autopilot.Readings {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := func(v float64) autopilot.Reading {
		return autopilot.Reading{Points: []autopilot.Point{{Time: c.now.Add(-c.delay), Value: v}}}
	}
	return autopilot.Readings{"rds048_disk_used_size": at(c.usedGB), "rds001_cpu_util": at(c.cpu), "rds002_mem_util": at(c.cpu)}
}

func (c cloud) WAL(ctx context.Context, _ autopilot.Instance, dimension string) (autopilot.WAL, error) {
	c.mu.Lock()
	onWAL := c.onWAL
	c.walFrom = append(c.walFrom, dimension)
	c.mu.Unlock()
	if onWAL != nil {
		onWAL(ctx)
	}
	return c.wal, c.walErr
}

func (c cloud) Catalogue(context.Context, autopilot.Instance) (all []flavors.Flavor, err error) {
	if c.noCatalogue {
		return nil, errNoAnswer
	}
	vcpus := map[string]int{"rds.mysql.n1.large.4": 2, "rds.mysql.n1.xlarge.4": 4, "rds.mysql.n1.2xlarge.4": 8}
	for code, n := range vcpus {
		all = append(all, flavors.Flavor{
			Code: code, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "single", VCPUs: n, MemoryGB: 4 * n,
			Zones: map[string]string{"eu-de-01": flavors.ZoneNormal},
		})
	}
	return all, nil
}

func (c cloud) ResizeList(context.Context, autopilot.Instance) ([]string, error) {
	return nil, &autopilot.RefusedError{Message: "DBS.200040 not for this engine"}
}

// Change begins a job, whose id contains the new size or flavor.
func (c cloud) Change(ctx context.Context, _ string, i v1alpha1.Change,
	confirm func(context.Context) error) (jobID string, err error) {
	c.mu.Lock()
	onChange := c.onChange
	c.mu.Unlock()
	if onChange != nil {
		if err := onChange(ctx, i); err != nil {
			return "", err
		}
	}
	if err := confirm(ctx); err != nil {
		return "", fmt.Errorf("%w: %w", autopilot.ErrNotRequested, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inst.Of(i.Kind) != i.From || c.inst.Status != autopilot.StatusActive {
		return "", fmt.Errorf("%w: %w", autopilot.ErrNotRequested, autopilot.ErrConflict)
	}
	c.steps, c.begun, c.inst.Status = append(c.steps, "change"), append(c.begun, i.To), "MODIFYING"
	return "job-" + i.To, nil
}

// Job reports that a job is done once the instance is ACTIVE again.
func (c cloud) Job(context.Context, string) (autopilot.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inst.Status == autopilot.StatusActive {
		return autopilot.Job{State: autopilot.JobDone}, nil
	}
	return autopilot.Job{}, nil
}

// endJobs completes the jobs of the instance itself.
func (w *world) endJobs() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, to := range w.begun {
		if size, err := strconv.Atoi(to); err == nil {
			w.inst.VolumeGB = size
		} else {
			w.inst.Flavor, w.inst.VCPUs, w.inst.MemoryGB = to, 4, 16
		}
	}
	w.inst.Status = autopilot.StatusActive
}

// ReconcileTopic creates the topic, whose subscription has the state that the world has, or removes it.
func (c cloud) ReconcileTopic(ctx context.Context, wanted bool, read func(context.Context) (v1alpha1.Topic, error),
	write func(context.Context, v1alpha1.Topic) error) (topic v1alpha1.Topic, err error) {
	onTopic := noError
	c.withLock(func() { onTopic = c.onTopic })
	if err := onTopic(ctx); err != nil {
		return v1alpha1.Topic{Message: err.Error()}, err
	}
	stored, err := read(ctx)
	if err != nil {
		return v1alpha1.Topic{}, err
	}
	c.withLock(func() {
		if c.unreachable && !wanted {
			topic, err = stored, errNoAnswer
			return
		}
		if c.topic.URN = ""; wanted {
			c.topic.URN = "urn"
			topic = c.topic
		}
	})
	if err == nil && topic != stored {
		if err = write(ctx, topic); err != nil {
			topic = v1alpha1.Topic{Message: err.Error()}
		}
	}
	return topic, err
}

func noError(context.Context) error { return nil }

// Ensure creates the rules.
func (c cloud) Ensure(_ context.Context, desired v1alpha1.DesiredAlarms, _ func(v1alpha1.Alarms) error,
) (v1alpha1.Alarms, []v1alpha1.Metric, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	observed := desired.Recorded
	if c.unreachable {
		return observed, nil, errNoAnswer
	}
	if len(observed.Rules) == 0 {
		c.steps = append(c.steps, "rules")
	}
	observed, c.watched = v1alpha1.Alarms{}, desired.InstanceID
	for _, r := range desired.Rules {
		id := "al-" + string(r.Metric)
		if _, ok := c.states[id]; !ok {
			c.states[id] = autopilot.AlarmState{State: v1alpha1.StateOK, Since: c.now}
		}
		observed.Rules = append(observed.Rules, v1alpha1.Rule{
			Metric: r.Metric, AlarmID: id, ThresholdPercent: int32(r.ThresholdPercent),
			Dimension: cmp.Or(desired.Dimension, "rds_cluster_id:"+desired.InstanceID),
		})
	}
	return observed, nil, nil
}

func (c cloud) Dimension(_ context.Context, inst autopilot.Instance) (string, error) {
	return "rds_cluster_id:" + inst.ID, nil
}

func (c cloud) Remove(ctx context.Context, _, _ string, notBefore time.Time, confirm func(context.Context) error,
) (n int, err error) {
	err = c.Marked(ctx, notBefore, func(string, string) { n = len(c.states) })
	c.withLock(func() { c.removes = append(c.removes, notBefore) })
	if n == 0 {
		return 0, err
	}
	if err := confirm(ctx); err != nil {
		return 0, err
	}
	if c.withLock(func() { clear(c.states) }); c.onRemove != nil {
		c.onRemove()
	}
	return n, nil
}

func (c cloud) Marked(_ context.Context, _ time.Time, f func(namespace, name string)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable {
		return errNoAnswer
	}
	if len(c.states) > 0 {
		f(database.Namespace, database.Name)
	}
	return nil
}

func (c cloud) Claim(_ context.Context, _, _ string, ids []string, _ time.Time) (claim v1alpha1.Claim, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	claim.By = c.owners[ids[0]]
	claim.Holds = claim.By == "" && len(c.states) > 0 && ids[0] == c.watched
	if c.unreachable {
		err = errNoAnswer
	}
	return claim, err
}
