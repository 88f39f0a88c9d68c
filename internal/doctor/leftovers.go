// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// callsLimit bounds the time of a run without its waits, which take less than three times Options.Wait.
	callsLimit = 10 * time.Minute
	// clockSlack is how much the clocks of two machines that run doctor may differ.
	clockSlack = 10 * time.Minute
)

// limit returns how long a run may take.
func (x *examination) limit() time.Duration { return 3*x.Wait + callsLimit }

// newRun returns the name of this run, which is part of the names of all its objects. It begins with the time at which
// the run has certainly ended. Later runs thus recognize what a killed run has left, and do not remove the objects of
// a run that still needs them.
func (x *examination) newRun() string {
	return fmt.Sprintf("%d-%s", x.Now().Add(x.limit()+clockSlack).Unix(), randomName())
}

// end returns the time at which a run has certainly ended, by its name.
func end(run string) (time.Time, bool) {
	digits, _, _ := strings.Cut(run, "-")
	seconds, err := strconv.ParseInt(digits, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// isThisRun reports whether the objects of a run are ours.
func (x *examination) isThisRun(run string) bool { return run == x.run }

// hasEnded reports whether nobody needs the objects of a run any more.
func (x *examination) hasEnded(run string) bool {
	at, known := end(run)
	return known && x.Now().After(at)
}

// checkLeftovers removes the objects of earlier runs that were killed. It leaves those of runs that may still be
// active.
func (x *examination) checkLeftovers(ctx context.Context) []Result {
	found, failed := x.remove(ctx, x.hasEnded)
	switch {
	case failed != nil:
		failed[0].Text = "Objects of an earlier run cannot be removed: " + failed[0].Text
		return failed
	case len(found.others) > 0:
		last := time.Time{}
		for _, run := range found.others {
			if at, _ := end(run); at.After(last) {
				last = at
			}
		}
		return result(Warning, "If nobody else runs doctor now, run it again after "+last.UTC().Format(time.RFC3339)+": it then removes them",
			"Another run, which may still be active, has %d objects", len(found.others))
	case len(found.removed) > 0:
		return ok("Removed objects of an earlier run: %s", strings.Join(found.removed, ", "))
	}
	return ok("No earlier run has left objects")
}

// checkRemoved removes the objects of this run, even if it was interrupted.
func (x *examination) checkRemoved(ctx context.Context) []Result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	found, failed := x.remove(ctx, x.isThisRun)
	if failed != nil {
		at, _ := end(x.run)
		failed[0].Do = "Run doctor again after " + at.UTC().Format(time.RFC3339) + ": it then removes the objects of this run"
	}
	return unless(failed, "Removed %d objects", len(found.removed))
}

// objects are those with doctor's names in the project and in the cluster.
type objects struct {
	removed []string // their names
	others  []string // the runs of those that were left, one for each object
}

// remove removes the objects of the runs for which wanted returns true. It returns what it found, or the failed calls.
func (x *examination) remove(ctx context.Context, wanted func(run string) bool) (found objects, failed []Result) {
	rules, err := x.api.Rules(ctx)
	errs := []error{err}
	visit := func(what, prefix, name string, remove func() error) {
		run, isDoctors := strings.CutPrefix(name, prefix)
		if _, known := end(run); !isDoctors || !known {
			return
		}
		if !wanted(run) {
			if !x.isThisRun(run) {
				found.others = append(found.others, run)
			}
			return
		}
		err := remove()
		errs = append(errs, err)
		if err == nil {
			found.removed = append(found.removed, what+" "+name)
		}
	}
	for _, r := range rules {
		visit("rule", x.prefix(), r.Name, func() error { return x.api.DeleteRule(ctx, r.ID) })
	}
	topics, err := x.api.Topics(ctx)
	errs = append(errs, err)
	for _, t := range topics {
		visit("topic", x.prefix(), t.Name, func() error { return x.removeTopic(ctx, t.URN) })
	}
	if x.kube != nil {
		all, err := x.kube.api.LiveAutopilots(ctx)
		errs = append(errs, err)
		for _, a := range all {
			if a.Annotations[v1alpha1.DoctorAnnotation] == "true" {
				visit("RdsAutopilot", mailboxPrefix, a.Name, func() error { return x.kube.api.DeleteAutopilot(ctx, a) })
			}
		}
	}
	slices.Sort(found.removed)
	return found, refused(errs...)
}

// removeTopic removes the topic's subscriptions and then the topic. The manual says that the cloud does the former by
// itself.
func (x *examination) removeTopic(ctx context.Context, urn string) error {
	subscriptions, err := x.api.TopicSubscriptions(ctx, urn)
	if err != nil && !errors.Is(err, otc.ErrNotFound) {
		return err
	}
	for _, s := range subscriptions {
		if err := x.api.Unsubscribe(ctx, s.URN); err != nil {
			return err
		}
	}
	return x.api.DeleteTopic(ctx, urn)
}
