// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// orphan is the rest of a deleted database in the cloud.
type orphan struct {
	name      string // of the topic, with which the names of the rules begin
	namespace string // of the database
	topicURN  string // empty if only rules are left
	ruleIDs   []string
}

// Orphans removes the topics and rules that our cluster has created for databases that no longer exist, and returns
// their names, sorted. known are the RdsAutopilots in a cache, so Orphans calls live for the existing ones before it
// removes anything. foreign is the number of topics and rules with such a name, but without a mark of our cluster. The
// error also says which lists could not be read.
func (a *Alarms) Orphans(ctx context.Context, notBefore time.Time, known []*v1alpha1.RdsAutopilot,
	live func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) (removed []string, foreign int, err error) {
	snapshot, err := a.options.Lister.Snapshot(ctx, notBefore)
	if err != nil {
		return nil, 0, err
	}
	orphans, foreign := a.findOrphans(snapshot, known)
	if len(orphans) == 0 || !a.options.EveryNamespace {
		return nil, foreign, snapshot.Err()
	}
	all, err := live(ctx)
	if err != nil {
		return nil, foreign, err
	}
	orphans, foreign = a.findOrphans(snapshot, all)
	for _, o := range orphans {
		if err := a.removeOrphan(ctx, o); err != nil {
			return removed, foreign, fmt.Errorf("remove %s: %w", o.name, err)
		}
		removed = append(removed, o.name)
	}
	return removed, foreign, snapshot.Err()
}

// Marked returns the number of topics and rules with a mark of our cluster, by namespace.
func (a *Alarms) Marked(ctx context.Context, notBefore time.Time) (map[string]int, error) {
	snapshot, err := a.options.Lister.Snapshot(ctx, notBefore)
	if err != nil {
		return nil, err
	}
	marks := map[string]int{}
	orphans, _ := a.findOrphans(snapshot, nil)
	for _, o := range orphans {
		marks[o.namespace] += len(o.ruleIDs)
		if o.topicURN != "" {
			marks[o.namespace]++
		}
	}
	return marks, snapshot.Err()
}

// findOrphans returns the orphans in a snapshot, sorted by name. existing must have all RdsAutopilots that existed when
// the snapshot was read. Rules are found even if the topics could not be listed. Topics are found only if the rules
// could be listed, because rules are removed first.
func (a *Alarms) findOrphans(s *Snapshot, existing []*v1alpha1.RdsAutopilot) (ours []orphan, foreign int) {
	alive := make(map[string]bool, len(existing))
	for _, owner := range existing {
		alive[cloudName(owner)] = true
	}
	found := map[string]*orphan{}
	find := func(base, mark string) *orphan {
		switch {
		case alive[base]:
			return nil
		case !isMarkOf(mark, base, a.options.ClusterID):
			foreign++
			return nil
		case found[base] == nil:
			namespace, _, _, _ := ParseMark(mark)
			found[base] = &orphan{name: base, namespace: namespace}
		}
		return found[base]
	}
	for _, t := range s.topics {
		if s.rulesErr != nil || !isName(t.Name) {
			continue
		}
		if o := find(t.Name, t.DisplayName); o != nil {
			o.topicURN = t.URN
		}
	}
	for _, r := range s.rules {
		base, ok := a.baseOf(r.Name)
		if !ok {
			continue
		}
		if o := find(base, r.Description); o != nil {
			o.ruleIDs = append(o.ruleIDs, r.ID)
		}
	}
	for _, o := range found {
		slices.Sort(o.ruleIDs)
		ours = append(ours, *o)
	}
	slices.SortFunc(ours, func(a, b orphan) int { return strings.Compare(a.name, b.name) })
	return ours, foreign
}

// removeOrphan removes the rules, then the topic, of an orphan. It reads each of them again and skips those that no
// longer have the orphan's name and mark. A missing rule or topic is no error.
func (a *Alarms) removeOrphan(ctx context.Context, o orphan) error {
	for _, id := range o.ruleIDs { // first, because they would notify a topic that no longer exists
		r, err := a.options.Cloud.Rule(ctx, id)
		if errors.Is(err, otc.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read rule: %w", err)
		}
		if base, ok := a.baseOf(r.Name); !ok || base != o.name || !isMarkOf(r.Description, base, a.options.ClusterID) {
			continue
		}
		if err := a.deleteRules(ctx, []otc.Rule{r}); err != nil {
			return err
		}
	}
	if o.topicURN == "" {
		return nil
	}
	t, err := a.options.Cloud.Topic(ctx, o.topicURN)
	if errors.Is(err, otc.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read topic: %w", err)
	}
	if t.Name != o.name || !isMarkOf(t.DisplayName, t.Name, a.options.ClusterID) {
		return nil
	}
	if err := a.options.Cloud.DeleteTopic(ctx, o.topicURN); err != nil {
		return fmt.Errorf("delete topic: %w", err)
	}
	return nil
}
