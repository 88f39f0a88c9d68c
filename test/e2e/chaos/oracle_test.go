// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// database is a database with its policy and load.
type database struct {
	*world.DB
	maxGB      int
	first      simcloud.Instance
	load       simcloud.Workload // the present one
	raised     map[v1alpha1.Metric]int
	wantsMore  bool // false if its load never rises
	withoutRds bool // without an Rds
}

// unsettled returns each difference from the state in which the service must end: in every Rds, RdsAutopilot and instance, in
// the alarms, and in cloud objects that belong to no database. It returns nothing once all is settled.
func (c *chaos) unsettled(ctx context.Context) (wrong []string) {
	objects, err := c.rdss.List(ctx, metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	report := func(name, format string, args ...any) { wrong = append(wrong, name+": "+fmt.Sprintf(format, args...)) }
	for _, db := range c.dbs {
		i := slices.IndexFunc(objects.Items, func(u unstructured.Unstructured) bool { return u.GetName() == db.Name })
		a, err := db.Autopilot(ctx)
		if (i < 0) != db.withoutRds || err != nil {
			report(db.Name, "its Rds (want none: %t) or its autopilot is gone: %v", db.withoutRds, err)
			continue
		}
		in := db.Instance()
		c.checkInstance(db, in, report)
		if !db.withoutRds {
			c.checkRds(db, in, &objects.Items[i], report)
		}
		c.checkAutopilot(db, in, a, report)
	}
	c.checkCloudObjects(report)
	return wrong
}

type reportFunc func(name, format string, args ...any)

// checkInstance compares an instance with its first state, and with what its load needs.
func (c *chaos) checkInstance(db *database, in simcloud.Instance, report reportFunc) {
	if in.VolumeGB > max(db.maxGB, db.first.VolumeGB) || in.VolumeGB < db.first.VolumeGB {
		report(db.Name, "the cloud has %d GB, which began with %d and may have %d", in.VolumeGB, db.first.VolumeGB, db.maxGB)
	}
	if full(in.VolumeGB, db.load.UsedGB) && in.VolumeGB < db.maxGB {
		report(db.Name, "%g of %d GB are used, and nothing is done", db.load.UsedGB, in.VolumeGB)
	}
	if cpu, memory := overloaded(in.Flavor, db.load); cpu || memory {
		report(db.Name, "%+v is too much for %s, and nothing is done", db.load, in.Flavor)
	}
}

// checkRds compares an Rds with its first spec, and with the instance.
func (c *chaos) checkRds(db *database, in simcloud.Instance, u *unstructured.Unstructured, report reportFunc) {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	c.history.mu.Lock()
	first := maps.Clone(c.history.first[db.Name])
	c.history.mu.Unlock()
	if spec["volumesize"] != int64(in.VolumeGB) || spec["flavorref"] != in.Flavor {
		report(db.Name, "the Rds asks for %v GB and %v, the cloud has %d GB and %s", spec["volumesize"], spec["flavorref"], in.VolumeGB, in.Flavor)
	}
	for _, ours := range []string{"volumesize", "flavorref", "autopilot"} { // the last one is dropped by the operator
		delete(spec, ours)
		delete(first, ours)
	}
	if diff := cmp.Diff(first, spec); diff != "" {
		report(db.Name, "somebody changed the spec (-first +last):\n%s", diff)
	}
	for _, m := range u.GetManagedFields() {
		if m.Manager == "rds-autopilot" && m.FieldsV1 != nil {
			for _, field := range strings.Split(m.FieldsV1.GetRawString(), `"f:`)[1:] {
				if name, _, _ := strings.Cut(field, `"`); name != "spec" && name != "volumesize" && name != "flavorref" {
					report(db.Name, "the service owns %s of the Rds", name)
				}
			}
		}
	}
}

func (c *chaos) checkAutopilot(db *database, in simcloud.Instance, a *v1alpha1.RdsAutopilot, report reportFunc) {
	s := a.Status
	if !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionArmed) {
		report(db.Name, "not armed: %+v", meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionArmed))
	}
	if s.Pending != nil || s.Overtaken != nil || s.Deferred != nil {
		report(db.Name, "not done: pending %+v, overtaken %+v, deferred %+v", s.Pending, s.Overtaken, s.Deferred)
	}
	if s.Instance == nil || int(s.Instance.VolumeGB) != in.VolumeGB || s.Instance.Flavor != in.Flavor || s.Instance.ID != in.ID {
		report(db.Name, "the autopilot knows %+v, the cloud has %s with %d GB and %s", s.Instance, in.ID, in.VolumeGB, in.Flavor)
	}
	topic := c.TopicURN()
	prefix := "autopilot_" + db.Namespace + "_" + db.Name + "_"
	for metric, threshold := range map[v1alpha1.Metric]int{v1alpha1.MetricStorage: thresholdOf(in.VolumeGB), v1alpha1.MetricCPU: 90, v1alpha1.MetricMemory: 90} {
		i := slices.IndexFunc(s.Alarms.Rules, func(r v1alpha1.Rule) bool { return r.Metric == metric })
		if i < 0 || count(c.Cloud.Rules(), func(r simcloud.Rule) bool {
			return strings.HasPrefix(r.Name, prefix) && r.ID == s.Alarms.Rules[i].AlarmID && int(r.Condition.Value) == threshold && r.Enabled &&
				r.ActionEnabled && len(r.AlarmActions) == 1 && slices.Equal(r.AlarmActions[0].NotificationList, []string{topic})
		}) != 1 {
			report(db.Name, "not one %s rule as recorded and with a threshold of %d %%", metric, threshold)
		}
	}
	c.checkIntake(db, s, report)
}

// checkIntake reports each acknowledged signal that is stored neither itself nor by a newer one.
func (c *chaos) checkIntake(db *database, s v1alpha1.Status, report reportFunc) {
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	for _, x := range c.history.answers {
		if x.name != db.Name {
			continue
		}
		kept := slices.ContainsFunc(s.Intake.Signals, func(g v1alpha1.Signal) bool { return g.Metric == x.metric && !g.AlarmTime.Time.Before(x.at) })
		stillOurs := slices.ContainsFunc(s.Alarms.Rules, func(r v1alpha1.Rule) bool { return r.AlarmID == x.alarmID })
		switch x.result {
		case "stored", "duplicate", "stale":
			if !kept {
				report(db.Name, "the %s signal of %v was acknowledged as %s and is lost: %+v", x.metric, x.at, x.result, s.Intake.Signals)
			}
		default: // of a rule that was not recorded at the time
			if stillOurs && !kept && x.known {
				report(db.Name, "the %s signal of %v was answered %s", x.metric, x.at, x.result)
			}
		}
	}
}

// checkCloudObjects counts the cloud's objects: the topic, its subscription, and the databases' own rules.
func (c *chaos) checkCloudObjects(report reportFunc) {
	topics, subscriptions, rules := c.Cloud.Topics(), c.Cloud.Subscriptions(), c.Cloud.Rules()
	if len(topics) != 1 || len(subscriptions) != 1 || subscriptions[0].Status != simcloud.Confirmed || subscriptions[0].Endpoint != c.PublicURL() || len(rules) != 3*len(c.dbs) {
		report("the cloud", "topics %+v, subscriptions %+v and %d rules, want one of each, confirmed, and %d", topics, subscriptions, len(rules), 3*len(c.dbs))
	}
}

// violations returns each change that no load of its database justifies.
func (c *chaos) violations() (wrong []string) {
	h := c.history
	h.mu.Lock()
	defer h.mu.Unlock()
	wrong = slices.Clone(h.wrong)
	for name, sizes := range h.sizes {
		if !slices.IsSorted(sizes) {
			wrong = append(wrong, fmt.Sprintf("%s: spec.volumesize became smaller: %v", name, sizes))
		}
	}
	lastStepGB := map[string]int{}
	for _, x := range h.requests {
		i := slices.IndexFunc(c.dbs, func(db *database) bool { return db.Name == x.name })
		if i < 0 || !justified(c.dbs[i], x, lastStepGB[x.name]) {
			wrong = append(wrong, fmt.Sprintf("%s: no load justifies %s from %v to %v; the loads were %+v", x.name, x.field, x.from, x.to, x.loads))
		}
		if x.field == "volumesize" {
			from, _ := x.from.(float64)
			to, _ := x.to.(float64)
			lastStepGB[x.name] = max(lastStepGB[x.name], int(to-from))
		}
	}
	for _, db := range c.dbs {
		if db.wantsMore {
			continue
		}
		if count(h.requests, func(x request) bool { return x.name == db.Name }) > 0 {
			wrong = append(wrong, db.Name+": it was changed without a load")
		}
	}
	return wrong
}

// justified reports whether one of the database's loads until then needs that step. A load justifies no second step, because
// the size is a function of the used space, and the flavor one of CPU and memory.
func justified(db *database, x request, lastStepGB int) bool {
	return slices.ContainsFunc(x.loads, func(l simcloud.Workload) bool {
		if x.field == "flavorref" {
			from, _ := x.from.(string)
			to, _ := x.to.(string)
			return larger(from, to, l) && shapeOf(to).vcpus <= 4*db.first.VCPUs && shapeOf(to).memoryGB <= 4*db.first.MemoryGB
		}
		from, _ := x.from.(float64)
		to, _ := x.to.(float64)
		return to > from && int(to)%10 == 0 && int(to) <= grown(int(from), l.UsedGB, lastStepGB, db.maxGB)
	})
}

func count[T any](all []T, match func(T) bool) int {
	n := 0
	for _, x := range all {
		if match(x) {
			n++
		}
	}
	return n
}
