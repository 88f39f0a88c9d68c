// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// unknownFor is how long a list is proof that the cloud has no instance with an id. Anyone can write invented ids, and
// a list for each check of each of them would leave no requests for others.
const unknownFor = 30 * time.Second

// Observer reads what every decision needs before its first guard. The loop and the dry run of plan use it.
type Observer struct {
	Instances InstanceReader
	Mode      v1alpha1.Mode // upper bound for every database
	Recheck   time.Duration
	Now       func() time.Time
	Claims    ClaimReader
}

// Observe returns the case of a database as the cloud had it at notBefore or later, without alarms. Its instance is nil
// if the Rds has no id yet or the cloud has no such instance.
func (o Observer) Observe(ctx context.Context, t *autopilot.Target, a *v1alpha1.RdsAutopilot,
	notBefore time.Time) (c autopilot.Case, err error) {
	c = autopilot.Case{
		Mode: autopilot.NarrowerMode(a.Spec.Mode, o.Mode), Spec: a.Spec, Generation: a.Generation, Recheck: o.Recheck,
		Wanted: t.Wanted, NoRds: t.NoRds, Status: a.Status.Copy(),
	}
	if c.Instance, err = o.instance(ctx, t.InstanceID, notBefore); err != nil {
		return c, err
	}
	if c.Instance != nil && c.Instance.ID != t.InstanceID {
		c.NodeOf, c.Instance = c.Instance.ID, nil
	}
	if c.Instance != nil {
		c.Instance = new(c.Instance.WithKnownSizes(a.Status.Instance))
		if t.NoRds {
			c.Wanted = autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
		}
		o.claim(ctx, &c, t, notBefore)
	}
	c.Now = o.Now() // after the reads, because nothing may be dated before the list that shows it
	return c, nil
}

// claim enters into the case who manages the instance. If the rules cannot be listed, the recorded ones count, because a
// claim that is unknown must not stop a database from growing. The list may be older than a recorded rule; then claim
// reads it again.
func (o Observer) claim(ctx context.Context, c *autopilot.Case, t *autopilot.Target, notBefore time.Time) {
	recorded := slices.ContainsFunc(c.Status.Alarms.Rules, func(r v1alpha1.Rule) bool { return watches(r, *c.Instance) })
	ids := append([]string{c.Instance.ID}, c.Instance.NodeIDs...)
	claim, err := o.Claims.Claim(ctx, t.Namespace, t.Name, ids, notBefore)
	if err == nil && recorded && claim == (v1alpha1.Claim{}) && c.Mode == v1alpha1.ModeAuto {
		claim, err = o.Claims.Claim(ctx, t.Namespace, t.Name, ids, o.Now())
	}
	if err != nil {
		claim = v1alpha1.Claim{Holds: recorded}
	}
	c.Claim = claim
}

func (o Observer) instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	if id == "" {
		return nil, nil
	}
	inst, err := o.Instances.Instance(ctx, id, notBefore)
	if err == nil && inst == nil { // it may be newer than the list
		inst, err = o.Instances.Instance(ctx, id, o.Now().Add(-unknownFor))
	}
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", id, err)
	}
	return inst, nil
}

// observe reads the case of this round, without alarms.
func (r *round) observe(ctx context.Context) (autopilot.Case, error) {
	o := Observer{Instances: r.cloud, Claims: r.cloud, Mode: r.options.Mode, Recheck: r.options.Recheck, Now: r.options.Now}
	c, err := o.Observe(ctx, r.target, r.rap, r.notBefore)
	if err != nil {
		return c, err
	}
	c.IsSweep, r.now = r.isSweep, c.Now
	if c.Instance != nil && c.Claim == (v1alpha1.Claim{}) && c.Status.Alarms.Refused != "" && c.Mode == v1alpha1.ModeAuto {
		c.Claim.By = r.smallerNamesake(c.Instance.ID)
	}
	if c.Instance == nil {
		return c, nil
	}
	r.controller.remember(r.key, func(m *memory) {
		if m.volumeGB != c.Instance.VolumeGB {
			m.volumeGB, m.formerSeen = c.Instance.VolumeGB, m.seen
		}
		c.LastSeen, c.FormerSeen = new(m.seen), m.formerSeen
		m.seen = c.Now
	})
	c.Instance.Replicas = slices.Clone(c.Instance.Replicas)
	for i, replica := range c.Instance.Replicas {
		claim, err := r.cloud.Claim(ctx, r.key.Namespace, r.key.Name, []string{replica.ID}, r.notBefore)
		c.Instance.Replicas[i].IsManaged = claim.By != "" || err != nil // unknown is no reason for a warning
	}
	return c, nil
}

// smallerNamesake returns the smallest RdsAutopilot, as NAMESPACE/NAME, that may change the same instance and is
// smaller than the round's. It manages the instance if Cloud Eye creates no rule that could say so.
func (r *round) smallerNamesake(instanceID string) (smallest string) {
	own := r.key.Namespace + "/" + r.key.Name
	r.kube.EachTarget(func(t *autopilot.Target) {
		other := t.Namespace + "/" + t.Name
		if t.InstanceID != instanceID || other >= own || smallest != "" && other >= smallest {
			return
		}
		o, ok := r.controller.newRound(Key{t.Namespace, t.Name})
		if ok && o.off() == (autopilot.Off{}) && o.effectiveMode() == v1alpha1.ModeAuto {
			smallest = other
		}
	})
	return smallest
}

// follow ends the changes that were in progress and adds the alarms that are to be decided.
func (r *round) follow(ctx context.Context, c *autopilot.Case) (record.Followed, error) {
	if c.NeedsLiveSpec() {
		if err := r.readTarget(ctx); err != nil {
			return record.Followed{Status: c.Status}, errors.Join(err, addAlarms(c))
		}
		c.Wanted, c.IsSpecLive = r.target.Wanted, true
	}
	followed := record.FollowUp(*c)
	c.Status = followed.Status
	return followed, addAlarms(c)
}

// readSizes adds the vCPUs and the memory of an instance that the cloud lists without them. Storage needs neither, so
// it is decided and requested before. A failed read is logged, and the next round repeats it.
func (r *round) readSizes(ctx context.Context, c *autopilot.Case) {
	if c.Instance == nil || c.Instance.SizesKnown() {
		return
	}
	if err := c.ReadFact(ctx, r.facts().Read, autopilot.FactCatalogue); err != nil {
		r.log.Warn("read the flavor's size", zap.String("flavor", c.Instance.Flavor), zap.Error(err))
	}
	record.SetSizes(c, c.Instance.WithSizes(c.Catalogue))
}

// addAlarms adds an alarm for each recorded rule that watches the instance, with its stored signal. Rules of an earlier
// instance are ignored. Storage has an alarm without a rule as well, because its used space counts by itself.
func addAlarms(c *autopilot.Case) (err error) {
	if c.Instance == nil {
		return nil
	}
	for _, rule := range c.Status.Alarms.Rules {
		if !watches(rule, *c.Instance) {
			continue
		}
		if _, unknown := autopilot.LookupMetric(rule.Metric); unknown != nil {
			err = errors.Join(err, unknown)
			continue
		}
		c.Alarms = append(c.Alarms, autopilot.Alarm{
			Metric: rule.Metric, Signal: autopilot.SignalFor(c.Status.Intake, rule),
		})
	}
	isStorage := func(a autopilot.Alarm) bool { return a.Metric == v1alpha1.MetricStorage }
	if !slices.ContainsFunc(c.Alarms, isStorage) {
		c.Alarms = append(c.Alarms, autopilot.Alarm{Metric: v1alpha1.MetricStorage})
	}
	return err
}

func watches(rule v1alpha1.Rule, inst autopilot.Instance) bool {
	_, value, _ := strings.Cut(rule.Dimension, ":")
	return value == inst.ID || slices.Contains(inst.NodeIDs, value)
}

// readJobs reads the state of the pending changes' jobs. If a job has ended, this round reads the instance after that.
func (r *round) readJobs(ctx context.Context) map[string]autopilot.Job {
	jobs := make(map[string]autopilot.Job)
	for _, ch := range r.rap.Status.Changes {
		if ch.JobID == "" || !change.IsPending(ch) {
			continue
		}
		job, err := r.cloud.Job(ctx, ch.JobID)
		if err != nil { // the instance shows the progress as well
			r.log.Warn("read the state of a job", zap.String("job", ch.JobID), zap.Error(err))
			continue
		}
		jobs[ch.JobID] = job
		if job.State != autopilot.JobRunning {
			r.notBefore = r.options.Now()
		}
	}
	return jobs
}
