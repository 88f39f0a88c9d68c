// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// step is one event. It turns a copy of the world into the next one.
type step struct {
	name string
	do   func(w *world)
}

// The ways in which a check may end.
const (
	whole        = "a check"
	killedBefore = "a check, killed before the write"
	killedAfter  = "a check, killed after the write"
	killedSent   = "a check, killed after the request was sent"
	isRefused    = "a check, and the request is refused"
	noAnswer     = "a check; the request arrives, its answer does not"
	isLost       = "a check, and the request is lost"
	notSent      = "a check, and nothing can be sent"
	lateAnswer   = "a check; the request arrives, its answer is late"
	lateRefusal  = "a check, and its refusal is late"
	restored     = "a check, and the API server restores the old value"
	offBetween   = "a check, and autopilot is turned off before the request"
	lowerBetween = "a check, and the cap is lowered before the request"
	outdated     = "a check, and the last look shows another policy"
)

// steps returns all events that are possible now.
func (w *world) steps() (all []step) {
	suffix := ""
	for i := range w.all {
		d := w.all[i]
		add := func(is bool, name string, do func(w *world, d *database)) {
			if is {
				all = append(all, step{name + suffix, func(w *world) {
					w.now = w.now.Add(stepTime)
					do(w, &w.all[i])
				}})
			}
		}
		w.addChecks(i, add)
		w.addLoad(d, add)
		w.addJobs(d, add)
		if w.databases == 1 {
			w.addWriters(d, add)
		}
		suffix = " (2nd database)"
	}
	isBusy := slices.ContainsFunc(w.all, func(d database) bool { return d.job.isRunning || len(d.rap.status.Changes) == 0 })
	for _, pass := range []struct {
		name string
		time time.Duration
	}{{"a minute", time.Minute}, {"16 minutes", 16 * time.Minute}, {"an hour", time.Hour}, {"a day", 25 * time.Hour}, {"8 days", 8 * 24 * time.Hour}} {
		if pass.time > time.Hour && isBusy {
			continue // no job takes a day, and without a change nothing could expire
		}
		all = append(all, step{pass.name, func(w *world) {
			w.now = w.now.Add(pass.time)
			for i := range w.all {
				w.all[i].setLoad(w.now.Add(-30*time.Second), w.all[i].load)
			}
		}})
	}
	return all
}

type adder func(is bool, name string, do func(w *world, d *database))

// addLoad adds what happens to the load and to its measurement.
func (w *world) addLoad(d database, add adder) {
	set := func(usedGB float64, isBusy bool) func(*world, *database) {
		return func(w *world, d *database) { d.setLoad(w.now, load{usedGB, isBusy}) }
	}
	hasVolume, hasFlavor := slices.Contains(w.kinds, volume), slices.Contains(w.kinds, flavor)
	fills, full := 0.92*float64(d.has.VolumeGB), autopilot.ReadOnlyAt(d.has.VolumeGB)+1
	add(hasVolume && d.load.usedGB < fills, "the disk fills", set(fills, d.load.isBusy))
	add(hasVolume && d.load.usedGB < full, "the disk is full", set(full, d.load.isBusy))
	add(hasVolume && d.load.usedGB > firstGB/2, "space is freed", set(firstGB/2, d.load.isBusy))
	add(hasFlavor && !d.load.isBusy, "the CPU is busy", set(d.load.usedGB, true))
	add(hasFlavor && d.load.isBusy, "the CPU is idle", set(d.load.usedGB, false))
	for i, name := range []string{"values come again", "values are missing", "values cannot be true"} {
		s := series(i)
		add(w.databases == 1 && s != d.series && (s == valid || d.series == valid), name, func(w *world, d *database) {
			if d.series = s; s == valid {
				d.setLoad(w.now, d.load)
			}
		})
	}
}

// addJobs adds what the cloud and the operator do.
func (w *world) addJobs(d database, add adder) {
	end := func(s autopilot.JobState, hasEffect bool) func(*world, *database) {
		return func(w *world, d *database) { d.end(w.now, s, hasEffect) }
	}
	begin := func(kind v1alpha1.ChangeKind, to string, by v1alpha1.Author) func(*world, *database) {
		return func(w *world, d *database) { d.begin(w.now, kind, to, by, true) }
	}
	// A job that shows nothing for longer counts as lost.
	isNew := w.now.Sub(d.job.began) < change.Patience
	add(d.job.isRunning && !d.job.isVisible && isNew, "the cloud shows the job", func(_ *world, d *database) { d.job.isVisible = true })
	add(d.job.isRunning, "the job ends", end(autopilot.JobDone, true))
	add(d.job.isRunning, "the job fails", end(autopilot.JobFailed, false))
	add(d.job.isRunning && !w.hasRds, "the job fails, and nobody sees it", end(autopilot.JobUnknown, false))
	add(d.job.isRunning && !w.hasRds, "the job ends without effect", end(autopilot.JobDone, false))
	for _, kind := range w.kinds {
		isIdle, to := w.hasRds && !d.job.isRunning && !d.isGone, d.spec.Of(kind)
		add(isIdle && d.isOpen(kind), "the operator applies the "+string(kind), begin(kind, to, *d.wrote.of(kind)))
		former := d.formerSpec.Flavor
		add(isIdle && kind == flavor && former != d.has.Flavor && former != to, "the operator applies the former flavor", begin(kind, former, others))
	}
}

// addWriters adds what people and other controllers write.
func (w *world) addWriters(d database, add adder) {
	add(!d.isGone && !d.job.isRunning, "the instance is gone", func(_ *world, d *database) { d.isGone = true })
	add(d.isGone, "the instance is back", func(_ *world, d *database) { d.isGone = false })
	add(d.memory != memory{}, "the process starts again", func(_ *world, d *database) { d.memory = memory{} })
	for _, m := range []v1alpha1.Mode{v1alpha1.ModeAuto, v1alpha1.ModeOff, v1alpha1.ModeRecommend} {
		add(d.rap.mode != m, "the mode is "+string(m), func(_ *world, d *database) { d.setPolicy(m, capGB) })
	}
	for _, kind := range w.kinds {
		values := []string{sold()[0].Code, sold()[1].Code, sold()[2].Code}
		if kind == volume {
			values = []string{d.has.Of(volume), strconv.Itoa(d.has.VolumeGB + 10), strconv.Itoa(d.has.VolumeGB + 30)}
		}
		for _, to := range values {
			add(w.hasRds && d.spec.Of(kind) != to, "a person requests "+to, func(w *world, d *database) { w.takeOver(d, kind, to) })
			add(d.has.Of(kind) != to && !d.job.isRunning && !d.isGone, "a person requests "+to+" from the cloud",
				func(w *world, d *database) { d.begin(w.now, kind, to, others, true) })
		}
	}
}

// takeOver writes a person's size or flavor into the Rds. It notes if that takes back the last size that we requested; a
// new policy is a new beginning.
func (w *world) takeOver(d *database, kind v1alpha1.ChangeKind, to string) {
	if gb := autopilot.Gigabytes(to); kind == volume && gb > d.has.VolumeGB {
		d.resets = nil
	} else if n := len(d.attempts) - 1; kind == volume && d.wrote.size == ours && d.isOpen(volume) && !d.job.isRunning &&
		d.attempts[n].to == d.spec.Of(volume) && d.attempts[n].generation == d.rap.generation {
		d.resets = append(slices.Clip(d.resets), w.now)
	}
	d.request(kind, to, others)
}

// addChecks adds a check for each way in which it may end.
func (w *world) addChecks(i int, add adder) {
	d := w.all[i]
	p := w.prepare(i, d.rap, d.memory, w.now.Add(stepTime))
	ends := []string{whole}
	switch {
	case p.isOff:
	case p.done.Attempt == nil:
		ends = append(ends, killedBefore)
	case w.databases > 1:
		ends = append(ends, killedAfter, isRefused, noAnswer)
	default:
		ends = append(ends, killedAfter, killedSent, isRefused, noAnswer, isLost, notSent, offBetween, lowerBetween, restored, lateAnswer, lateRefusal)
	}
	for _, end := range ends {
		isPossible := (end != restored || w.hasRds) && (end != lateAnswer || d.flight == nil && !w.hasRds) && (end != lateRefusal || d.flight == nil)
		add(isPossible, end, func(w *world, d *database) { w.finish(d, p, end) })
	}
	add(d.flight != nil, "the late answer arrives", func(w *world, d *database) {
		w.record(d, d.flight.c, d.flight.answer)
		d.flight = nil
	})
	add(d.former.version != d.rap.version, "a leader with the former version checks", func(w *world, d *database) {
		w.finish(d, w.prepare(i, d.former, memory{}, w.now), whole)
	})
}

// prepared is a check before its write.
type prepared struct {
	read    object
	memory  memory
	c       autopilot.Case
	verdict autopilot.Verdict
	done    record.Recorded
	isOff   bool
}

// prepare observes, follows up and decides as the loop does.
func (w *world) prepare(i int, read object, m memory, now time.Time) prepared {
	d, spec := &w.all[i], cases.Policy()
	spec.Mode, spec.Storage.MaxGB, spec.Flavor.MaxChangesPerDay = read.mode, read.maxGB, w.budget
	c := autopilot.Case{Now: now, Mode: read.mode, Spec: spec, Generation: read.generation, Recheck: 30 * time.Second,
		IsSweep: true, Wanted: d.spec, Instance: d.instance(), Claim: v1alpha1.Claim{Holds: true}, NoRds: !w.hasRds,
		Accepted: m.accepted, Status: read.status, IsSpecLive: change.AnyPending(read.status.Changes) && w.hasRds}
	if read.mode == v1alpha1.ModeOff {
		s := read.status.Copy()
		record.ClearOn(autopilot.Case{Now: c.Now}, &s)
		record.SetOff(&s, string(autopilot.ReasonNotEnabled), "The mode is Off", c.Generation, c.Now)
		return prepared{read: read, memory: m, c: c, done: record.Recorded{Status: s}, isOff: true}
	}
	if !w.hasRds {
		c.Wanted = d.has
		c.Jobs = map[string]autopilot.Job{d.job.id: {State: d.job.state, EndTime: d.job.ended, Message: "it failed"}}
	}
	if c.Instance != nil {
		if m.gb != d.has.VolumeGB {
			m.gb, m.formerSeen = d.has.VolumeGB, m.lastSeen
		}
		c.LastSeen, c.FormerSeen = new(m.lastSeen), m.formerSeen
		m.lastSeen = c.Now
		for _, kind := range w.kinds {
			metric := map[v1alpha1.ChangeKind]v1alpha1.Metric{volume: v1alpha1.MetricStorage, flavor: v1alpha1.MetricCPU}[kind]
			c.Alarms = append(c.Alarms, autopilot.Alarm{Metric: metric})
		}
	}
	c.IsSpecLive = c.IsSpecLive || c.NeedsLiveSpec()
	c.Status = record.FollowUp(c).Status
	v := decide.Walk(context.Background(), &c, func(_ context.Context, c *autopilot.Case, f autopilot.Fact) error { w.read(i, c, f); return nil })
	return prepared{read: read, memory: m, c: c, verdict: v, done: record.Outcome(c, v)}
}

// read reads a fact as the loop does. There is no resize list.
func (w *world) read(i int, c *autopilot.Case, f autopilot.Fact) {
	d := &w.all[i]
	switch f {
	case autopilot.FactAlarmState:
		c.Alarms = slices.Clone(c.Alarms)
		for n := range c.Alarms {
			a := &c.Alarms[n]
			isFull := a.Metric == v1alpha1.MetricStorage && c.IsFull(autopilot.Evidence{UsedGB: d.load.usedGB})
			if a.State = v1alpha1.StateOK; isFull || a.Metric == v1alpha1.MetricCPU && d.load.isBusy {
				a.State = v1alpha1.StateAlarm
			}
		}
	case autopilot.FactUsedSpace:
		c.SetEvidence(v1alpha1.MetricStorage, map[series]autopilot.Evidence{
			valid: {Time: d.measuredTime, UsedGB: d.measured.usedGB}, invalid: {Time: d.measuredTime},
		}[d.series])
	case autopilot.FactUsage: // the reader drops what is over 100 %
		c.SetEvidence(v1alpha1.MetricCPU, map[series]autopilot.Evidence{
			valid: {Time: d.measuredTime, Percent: map[bool]float64{false: 20, true: 99}[d.measured.isBusy]},
		}[d.series])
	case autopilot.FactCatalogue:
		c.Catalogue = sold()
	case autopilot.FactPlace:
		c.HasPlace = true
		for n := range w.all {
			c.HasPlace = c.HasPlace && (n == i || !change.HoldsPlace(w.all[n].rap.status.Changes, c.Now))
		}
	}
}

// finish is the rest of a check: it stores the status, requests the change and records the answer.
func (w *world) finish(d *database, p prepared, end string) {
	if p.read.version == d.rap.version { // else another process checks
		d.memory = p.memory
	}
	next := d.rap
	next.status = p.done.Status
	if end == killedBefore {
		d.memory = memory{}
		return
	}
	if !d.write(p.read, next) {
		return
	}
	if w.judgeCheck(d, p); p.done.Attempt == nil {
		return
	}
	a := record.Answer{Attempt: *p.done.Attempt, Before: p.done.Before, Overtaken: p.done.Overtaken}
	for _, x := range p.verdict.Decisions {
		if x.Acts() {
			a.Acting, a.News = append(a.Acting, x), append(a.News, x)
		}
	}
	p.c.Accepted, p.c.IsSpecLive, d.memory.accepted = a.Attempt.RequestTime, true, nil
	switch end {
	case killedAfter:
		d.memory = memory{}
		return
	case offBetween:
		d.setPolicy(v1alpha1.ModeOff, capGB)
	case lowerBetween:
		d.setPolicy(d.rap.mode, int32(d.has.VolumeGB))
	}
	if isChanged := d.rap.generation != p.c.Generation; isChanged { // the last look
		end = outdated
	}
	if end != notSent && end != outdated {
		w.judgeRequest(d, a.Attempt)
	}
	x := attempt{kind: a.Attempt.Kind, to: a.Attempt.To, at: a.Attempt.RequestTime.Time, first: a.Attempt.RequestTime.Time,
		evidence: a.Attempt.EvidenceTime.Time, generation: a.Attempt.Generation}
	if a.Before.State != "" {
		x.first = d.firstAttempt(a.Before)
	}
	w.send(d, p.c, a, x, end)
}

// send is what becomes of a request.
func (w *world) send(d *database, c autopilot.Case, a record.Answer, x attempt, end string) {
	switch end {
	case whole, noAnswer, killedSent, lateAnswer, offBetween, lowerBetween: // it arrives
		switch {
		case w.hasRds:
			d.request(x.kind, x.to, ours)
			x.hasArrived = true
		case d.begin(w.now, x.kind, x.to, ours, false):
			a.Event, a.JobID, x.hasArrived = change.Accepted, d.job.id, true
		default:
			a.Event, a.Reason = change.Rejected, autopilot.ReasonInstanceBusy
		}
	case isRefused, lateRefusal:
		if a.Event, a.Reason = change.Rejected, autopilot.ReasonCloudRefused; w.hasRds {
			a.Reason = autopilot.ReasonRefused
		}
	case restored:
		if a.Reason = autopilot.ReasonContested; x.kind == volume {
			d.resets = append(slices.Clip(d.resets), w.now)
		}
	case notSent:
		a.Event, a.Reason = change.Unsent, autopilot.CloudUnreachable
	case outdated:
		a.Event = change.Unsent
	}
	d.attempts = append(slices.Clip(d.attempts), x)
	switch {
	case end == killedSent:
		d.memory = memory{}
	case end == lateAnswer, end == lateRefusal:
		d.flight = &flight{a, c}
	case end == whole && w.hasRds:
		d.memory.accepted = a.Attempt.RequestTime
	case end != noAnswer && end != isLost:
		w.record(d, c, a)
	}
}

// record records an answer in the newest version.
func (w *world) record(d *database, c autopilot.Case, a record.Answer) {
	isKnown := a.Event == change.Rejected || a.Event == change.Unsent
	ch, _ := change.Pending(d.rap.status.Changes, a.Attempt.Kind) // after it has ended, an answer moves it no more
	for i, x := range d.attempts {
		if isKnown && x.at.Equal(a.Attempt.RequestTime.Time) && ch.RequestTime.Equal(a.Attempt.RequestTime) {
			d.attempts = slices.Clone(d.attempts)
			d.attempts[i].known = a.Event
		}
	}
	next := d.rap
	next.status = next.status.Copy()
	c.Now, c.Wanted = w.now, d.spec
	a.Record(c, &next.status)
	d.write(d.rap, next)
}
