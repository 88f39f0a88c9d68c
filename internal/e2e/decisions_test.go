// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// decisions is a world with a database for each of some rows.
type decisions struct {
	*world.World
	t     *testing.T
	ctx   context.Context //nolint:containedctx // that of the test, for what a row does in it
	raps  dynamic.ResourceInterface
	dbs   []*decided
	noCES atomic.Bool // Cloud Eye does not answer

	mu sync.Mutex
	of map[string]*decided // by the id of the instance
}

// decided is one row's database.
type decided struct {
	row
	*scene
	*world.DB
	in    *decisions
	test  string // its name in reports
	alone bool   // without an Rds
	deaf  bool   // no message comes: the sweep looks after it
	first otcsim.Instance
}

// Each row of the decision's tables, with apply: Cloud: beside an Rds whose operator hangs, and without an Rds. Many of them at
// once in one process; half of them hear Cloud Eye's messages, and the others are found by the sweep. Every change runs a fifth
// of the rows, each in one of the two ways; the long level runs all of them so, and soak each in both.
func TestEveryRowOfTheDecisionInTheCloud(t *testing.T) {
	if !level.IsSoak(t) {
		decideMany(t, func(i int, r row, alone bool) bool {
			return (i%5 == 0 || level.IsLong(t)) && (r.rds || (i%2 == 0) != alone)
		})
		return
	}
	for way, is := range map[string]bool{"with an Rds": false, "without an Rds": true} {
		t.Run(way, func(t *testing.T) {
			decideMany(t, func(_ int, _ row, alone bool) bool { return alone == is })
		})
	}
}

// decideMany are the rows that are taken, in one world.
func decideMany(t *testing.T, takes func(i int, r row, alone bool) bool) {
	t.Parallel()
	d := newDecisions(t, 20, shared.Start)
	d.add(manyRows(), takes)
	d.decide("--max-flavor-changes", "1000")
	if heard := d.check(); heard < len(d.dbs)/10 { // a busy API server refuses many, and the sweep is first
		t.Error("hardly any message came")
	}
}

// manyRows are those that do not mind each other.
func manyRows() []row { return slices.Concat(storageRows(), flavorRows(), historyRows(), otherRows()) }

// bothWays takes each row beside an Rds and without one.
func bothWays(int, row, bool) bool { return true }

// newDecisions is a world without databases. Its service goes without the race detector: so many databases at once are about rows, and
// it would take most of two cores.
func newDecisions(t *testing.T, speed float64, start func(world.Test, world.Options) *world.World) *decisions {
	t.Helper()
	d := &decisions{t: t, ctx: t.Context(), of: map[string]*decided{}}
	d.World = start(t, world.Options{Resync: time.Hour, Cloud: otcsim.Options{
		Speed: speed, Fault: d.fault, DeliveryFault: d.lose,
		Settings: otcsim.Settings{EnlargeDuration: time.Minute, ResizeDuration: 2 * time.Minute, RetryInterval: 10 * time.Minute},
	}})
	d.Operator.Pause()
	client, err := dynamic.NewForConfig(d.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	d.raps = client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(d.Namespace)
	return d
}

// decide arms the databases, stages each, and lets the service decide on them.
func (d *decisions) decide(flags ...string) {
	t := d.t
	t.Helper()
	flags = append([]string{"--allow-apply", "Cloud", "--sweep-interval", "5s"}, flags...)
	first := d.MustServe(t, flags...)
	d.until("all are armed", (*decided).unarmed)
	if err := first.Stop(d.ctx); err != nil {
		t.Fatal(err)
	}
	d.each((*decided).stage)
	d.burden(true)
	d.until("Cloud Eye says what it is to say", func(x *decided, _ *v1alpha1.RdsAutopilot) string {
		if r, _ := x.Rule(x.metric); x.rule != "" && r.State != x.rule {
			return fmt.Sprintf("the rule is in %q, want %q", r.State, x.rule)
		}
		return ""
	})
	p := d.MustServe(t, flags...)
	d.burden(false)
	d.post(false)
	d.until("all rows are decided", func(x *decided, a *v1alpha1.RdsAutopilot) string {
		if x.message != nil && x.message.unconfirmed {
			return ""
		}
		return x.lacks(a)
	})
	d.noCES.Store(true)
	d.post(true)
	d.until("all rows are decided without Cloud Eye", (*decided).lacks)
	d.noCES.Store(false)
	before, err := p.Metrics(d.ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = world.Eventually(d.ctx, "nothing more comes of another look at all", func(ctx context.Context) (bool, error) {
		now, err := p.Metrics(ctx)
		return now.Sum("rds_autopilot_sweep_duration_seconds_count") >= before.Sum("rds_autopilot_sweep_duration_seconds_count")+2, err
	})
	if err != nil {
		t.Fatal(err)
	}
	secrets(t, p)
}

// add makes the databases of the rows that are taken. They are quiet.
func (d *decisions) add(rows []row, takes func(i int, r row, alone bool) bool) {
	for i, r := range rows {
		for _, alone := range []bool{false, true} {
			if alone && r.rds || !takes(i, r, alone) {
				continue
			}
			x := &decided{row: r, scene: quiet(), in: d, alone: alone, deaf: (i/2%2 == 0) == alone}
			x.test = r.name + map[bool]string{false: ", with an Rds", true: ", without an Rds"}[alone]
			x.row.stage(x.scene)
			x.NoRds, x.Database.Name = alone, fmt.Sprintf("row-%d-%t", i, alone)
			d.dbs = append(d.dbs, x)
		}
	}
	d.each((*decided).add)
}

// each does something with each database.
func (d *decisions) each(do func(*decided) error) {
	d.t.Helper()
	err := each(8, len(d.dbs), func(i int) error {
		if err := do(d.dbs[i]); err != nil {
			return fmt.Errorf("%s: %w", d.dbs[i].test, err)
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (x *decided) add() error {
	var err error
	if x.DB, err = x.in.AddDatabase(x.in.ctx, x.Database); err != nil {
		return err
	}
	x.in.mu.Lock()
	x.in.of[x.ID] = x
	x.in.mu.Unlock()
	if x.alone {
		x.spec.InstanceID = x.ID
	} else if err = x.PatchRds(x.in.ctx, fmt.Sprintf(`{"status":{"id":%q}}`, x.ID)); err != nil {
		return err
	}
	spec, err := json.Marshal(x.spec)
	if err != nil {
		return err
	}
	return x.CreateAutopilot(x.in.ctx, string(spec))
}

// unarmed is what is missing until an alarm of it would be noticed.
func (x *decided) unarmed(a *v1alpha1.RdsAutopilot) string {
	switch {
	case a == nil:
		return "there is no RdsAutopilot"
	case a.Spec.Mode == v1alpha1.ModeOff, world.Armed(a), x.deaf && len(a.Status.Alarms.Rules) > 0 && a.Status.Alarms.Rules[0].AlarmID != "":
		return ""
	}
	return fmt.Sprintf("not armed: %+v", a.Status.Conditions)
}

// stage makes of it what the row wants, while the service is stopped.
func (x *decided) stage() error {
	if x.is != nil {
		if err := x.in.Cloud.ChangeInstance(x.ID, x.is); err != nil {
			return err
		}
	}
	x.first = x.Instance()
	x.settle(x.first)
	before, err := json.Marshal(map[string]any{"status": x.status})
	if err != nil {
		return err
	}
	if _, err = x.in.raps.Patch(x.in.ctx, x.Name, types.MergePatchType, before, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status"); err != nil {
		return err
	}
	if !x.alone && x.asks != nil {
		asked, err := json.Marshal(map[string]any{"spec": x.asks})
		if err != nil {
			return err
		}
		if err := x.PatchRds(x.in.ctx, string(asked)); err != nil {
			return err
		}
	}
	if x.more != nil {
		return x.more(x.in, x.DB)
	}
	return nil
}

// burden gives the databases the load that raises their alarms: those that are to have it before the service looks, or the others.
func (d *decisions) burden(early bool) {
	d.t.Helper()
	d.each(func(x *decided) error {
		if in := x.Instance(); in.ID != "" && (x.rule != "") == early {
			return x.SetWorkload(x.load(in))
		}
		return nil
	})
}

// fault is what goes wrong with requests to the cloud.
func (d *decisions) fault(r *http.Request) *otcsim.Fault {
	service, operation := otcsim.OperationOf(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case service == "ces" && d.noCES.Load():
		return &otcsim.Fault{Status: http.StatusServiceUnavailable}
	case operation == "ListFlavors" && strings.HasSuffix(r.URL.Path, "/SQLServer"):
		return &otcsim.Fault{Status: http.StatusInternalServerError}
	case operation == "ShowJob" && r.URL.Query().Get("id") == endlessJob:
		return &otcsim.Fault{Status: http.StatusServiceUnavailable}
	}
	if x := d.of[r.PathValue("instance")]; x != nil {
		if f, ok := x.fault[operation]; ok {
			return &f
		}
	}
	return nil
}

func (d *decisions) lose(m otcsim.Delivery) otcsim.DeliveryFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.of {
		if x.deaf && m.Type == otcsim.TypeNotification && strings.Contains(m.TopicURN, "_"+x.Name+"_") {
			return otcsim.DeliveryFault{Drop: true}
		}
	}
	return otcsim.DeliveryFault{}
}

// post posts the messages that come by hand, signed as SMN does.
func (d *decisions) post(unconfirmed bool) {
	for _, x := range d.dbs {
		m := x.message
		if m == nil || m.unconfirmed != unconfirmed {
			continue
		}
		a, err := x.Autopilot(d.ctx)
		if err != nil {
			d.t.Fatal(err)
		}
		i := slices.IndexFunc(a.Status.Alarms.Rules, func(r v1alpha1.Rule) bool { return r.Metric == m.metric })
		if i < 0 {
			d.t.Fatalf("%s: rules %+v", x.test, a.Status.Alarms.Rules)
		}
		now := time.Now()
		_, text, err := d.Cloud.AlarmMessage(a.Status.Alarms.Rules[i].AlarmID, otcsim.StateAlarm, m.percent, now.Add(-m.measured), now.Add(-m.at))
		if err != nil {
			d.t.Fatal(err)
		}
		if m.noValue {
			text = regexp.MustCompile(`"alarmValue":\[[^]]*\]`).ReplaceAllString(text, `"alarmValue":[]`)
		}
		body := d.Cloud.Sign(otcsim.Envelope{TopicURN: a.Status.Alarms.TopicURN, Message: text}).JSON()
		err = world.Eventually(d.ctx, x.test+": its message is stored", func(ctx context.Context) (bool, error) {
			code, said, err := d.Post(ctx, body)
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%d %s", code, said)
			}
			return err == nil, err
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// until waits until no database lacks anything.
func (d *decisions) until(what string, lacks func(*decided, *v1alpha1.RdsAutopilot) string) {
	d.t.Helper()
	var open []string
	err := world.Eventually(d.ctx, what, func(ctx context.Context) (bool, error) {
		time.Sleep(time.Second) //nolint:forbidigo // between two looks at all of them
		all, err := d.autopilots(ctx)
		if err != nil {
			return false, err
		}
		open = nil
		for _, x := range d.dbs {
			if wrong := lacks(x, all[x.Name]); wrong != "" {
				open = append(open, x.test+": "+wrong)
			}
		}
		return len(open) == 0, nil
	})
	if err != nil {
		d.t.Fatalf("%v\n%s", err, strings.Join(open, "\n"))
	}
}

func (d *decisions) autopilots(ctx context.Context) (map[string]*v1alpha1.RdsAutopilot, error) {
	list, err := listAutopilots(ctx, d.raps)
	all := make(map[string]*v1alpha1.RdsAutopilot, len(list))
	for i := range list {
		all[list[i].Name] = &list[i]
	}
	return all, err
}

// lacks is what has not come yet of what the row wants.
func (x *decided) lacks(a *v1alpha1.RdsAutopilot) string {
	if a == nil {
		return "there is no RdsAutopilot"
	}
	if x.reason != "" && !x.isSaid(a) {
		return fmt.Sprintf("want %s %s; decisions %+v, conditions %+v", x.metric, x.reason, a.Status.Decisions, a.Status.Conditions)
	}
	for _, to := range x.to {
		if !slices.ContainsFunc(a.Status.Changes, func(ch v1alpha1.Change) bool {
			return ch.To == to && ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeCompleted
		}) {
			return fmt.Sprintf("want %s; changes %+v, pending %+v", to, a.Status.Changes, a.Status.Pending)
		}
	}
	return ""
}

func (x *decided) isSaid(a *v1alpha1.RdsAutopilot) bool {
	if x.metric == "" {
		armed := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed)
		return armed != nil && armed.Status == metav1.ConditionFalse && armed.Reason == x.reason
	}
	return slices.ContainsFunc(a.Status.Decisions, func(r v1alpha1.DecisionRecord) bool {
		return r.Metric == x.metric && r.Reason == x.reason && r.Message != "" && strings.Contains(r.Message, x.says)
	})
}

// check looks at each row when all is over, and says how many were decided on by a message.
func (d *decisions) check() (heard int) {
	d.t.Helper()
	all, err := d.autopilots(d.ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, x := range d.dbs {
		d.t.Run(x.test, func(t *testing.T) { d.checkOne(t, x, all[x.Name]) })
		if a := all[x.Name]; a != nil && slices.ContainsFunc(a.Status.Decisions, func(r v1alpha1.DecisionRecord) bool { return r.MessageID != "" }) {
			heard++
		}
	}
	d.t.Logf("%d databases, %d of them decided on by a message", len(d.dbs), heard)
	return heard
}

func (d *decisions) checkOne(t *testing.T, x *decided, a *v1alpha1.RdsAutopilot) {
	if wrong := x.lacks(a); wrong != "" {
		t.Fatal(wrong)
	}
	volumeGB, flavor := x.first.VolumeGB, x.first.Flavor
	for _, to := range x.to {
		if gb, err := strconv.Atoi(to); err == nil {
			volumeGB = gb
		} else {
			flavor = to
		}
	}
	in := x.Instance()
	if in.ID != "" && (in.VolumeGB != volumeGB || in.Flavor != flavor) {
		t.Errorf("the cloud has %d GB and %s, want %d GB and %s", in.VolumeGB, in.Flavor, volumeGB, flavor)
	}
	if asked, begun := d.asked(x.ID); len(x.fault) == 0 && (begun != len(x.to)+x.first.FailingJobs || asked > 0 && len(x.to) == 0) {
		t.Errorf("the cloud was asked for %d changes and has begun %d, want %d", asked, begun, len(x.to)+x.first.FailingJobs)
	}
	if (a.Status.Pending != nil || a.Status.Overtaken != nil) && !x.waits {
		t.Errorf("pending %+v, overtaken %+v", a.Status.Pending, a.Status.Overtaken)
	}
	if x.metric == "" && x.reason == "" && len(x.to) == 0 && slices.ContainsFunc(a.Status.Decisions, func(r v1alpha1.DecisionRecord) bool { return r.Metric != onStorage }) {
		t.Errorf("decisions %+v", a.Status.Decisions)
	}
	if x.reason != "Stalled" && slices.ContainsFunc(a.Status.Decisions, func(r v1alpha1.DecisionRecord) bool { return r.Reason == "Stalled" }) {
		t.Errorf("something has stalled: %+v", a.Status.Decisions)
	}
	rds, err := x.Rds(d.ctx)
	if x.alone != (err != nil) {
		t.Errorf("without an Rds %t, and %v", x.alone, err)
	}
	if !x.alone && len(x.to) > 0 && !x.waits && (int(rds.Spec.VolumeSize) != in.VolumeGB || rds.Spec.FlavorRef != in.Flavor) {
		t.Errorf("the Rds asks for %d GB and %s, the cloud has %d GB and %s", rds.Spec.VolumeSize, rds.Spec.FlavorRef, in.VolumeGB, in.Flavor)
	}
}

// asked is how many changes of an instance the cloud was asked for, and how many of them it has begun.
func (d *decisions) asked(id string) (asked, begun int) {
	for _, r := range d.Cloud.Requests() {
		if r.Method == http.MethodPost && r.Service == "rds" && strings.Contains(r.URI, id) {
			asked++
			if r.Status == http.StatusAccepted {
				begun++
			}
		}
	}
	return asked, begun
}
