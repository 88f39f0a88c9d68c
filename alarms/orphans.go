// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// Orphan is the rest of a deleted database in the cloud.
type Orphan struct {
	Name      string // see Name
	ClusterID string
	TopicURN  string // empty if only rules are left
	RuleIDs   []string
}

// Orphans returns the topics and rules that our cluster has created for databases that no longer exist, sorted by
// name. alive reports whether a base name belongs to an existing object; it must know all objects that existed when
// the snapshot was read. foreign is the number of topics and rules with such a name, but without a mark of our
// cluster. Rules are found even if the topics could not be listed. Topics are found only if the rules could be
// listed, because rules are removed first.
func (a *Alarms) Orphans(s *Snapshot, clusterID string, alive func(name string) bool) (ours []Orphan, foreign int) {
	found := map[string]*Orphan{}
	find := func(base, mark string) *Orphan {
		switch {
		case alive(base):
			return nil
		case !isMarkOf(mark, base, clusterID):
			foreign++
			return nil
		case found[base] == nil:
			found[base] = &Orphan{Name: base, ClusterID: clusterID}
		}
		return found[base]
	}
	for _, t := range s.topics {
		if s.rulesErr != nil || !isName(t.Name) {
			continue
		}
		if o := find(t.Name, t.DisplayName); o != nil {
			o.TopicURN = t.URN
		}
	}
	for _, r := range s.rules {
		base, ok := a.baseOf(r.Name)
		if !ok {
			continue
		}
		if o := find(base, r.Description); o != nil {
			o.RuleIDs = append(o.RuleIDs, r.ID)
		}
	}
	for _, o := range found {
		slices.Sort(o.RuleIDs)
		ours = append(ours, *o)
	}
	slices.SortFunc(ours, func(a, b Orphan) int { return strings.Compare(a.Name, b.Name) })
	return ours, foreign
}

// RemoveOrphan removes the rules, then the topic, of an orphan. It reads each of them again and skips those that no
// longer have the orphan's name and mark. A missing rule or topic is no error.
func (a *Alarms) RemoveOrphan(ctx context.Context, o Orphan) error {
	for _, id := range o.RuleIDs { // first, because they would notify a topic that no longer exists
		r, err := a.cloud.Rule(ctx, id)
		if errors.Is(err, otc.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read rule: %w", err)
		}
		if base, ok := a.baseOf(r.Name); !ok || base != o.Name || !isMarkOf(r.Description, base, o.ClusterID) {
			continue
		}
		if err := a.deleteRules(ctx, []otc.Rule{r}); err != nil {
			return err
		}
	}
	if o.TopicURN == "" {
		return nil
	}
	t, err := a.cloud.Topic(ctx, o.TopicURN)
	if errors.Is(err, otc.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read topic: %w", err)
	}
	if t.Name != o.Name || !isName(t.Name) || !isMarkOf(t.DisplayName, t.Name, o.ClusterID) {
		return nil
	}
	if err := a.cloud.DeleteTopic(ctx, o.TopicURN); err != nil {
		return fmt.Errorf("delete topic: %w", err)
	}
	return nil
}
