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

// Orphan is what is left in the cloud of a database that is no more.
type Orphan struct {
	Name      string // see Name
	ClusterID string
	TopicURN  string // empty if only rules are left
	RuleIDs   []string
}

// Orphans finds what our cluster has made for databases that are no more, in the order of their names. alive reports
// whether a base name is that of an existing object; it must know all that existed when the listing was read. Topics and
// rules that bear such a name as well, but the mark of another cluster or none, are only counted. Rules are found also where
// the topics could not be listed; topics only where the rules could, which go before them.
func (a *Alarms) Orphans(l *Listing, clusterID string, alive func(name string) bool) (ours []Orphan, foreign int) {
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
	for _, t := range l.topics {
		if l.rulesErr != nil || !isName(t.Name) {
			continue
		}
		if o := find(t.Name, t.DisplayName); o != nil {
			o.TopicURN = t.URN
		}
	}
	for _, r := range l.rules {
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

// RemoveOrphan removes rules and topic, those that still bear name and mark. What is gone already is no error.
func (a *Alarms) RemoveOrphan(ctx context.Context, o Orphan) error {
	for _, id := range o.RuleIDs { // first: they would notify a topic that is no more
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
