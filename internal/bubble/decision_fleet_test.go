// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The decisions of docs/decisions.md on the real API server and the simulated cloud, on a clock where a minute takes a second.
func TestDecisions(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
		f.runCloud()
		const at = "decisions"
		f.namespace(at)
		add := func(name, flavor string, volumeGB int, load otcsim.Workload) otcsim.Instance {
			return f.database(at, name, otcsim.Instance{Flavor: flavor, VolumeGB: volumeGB, Workload: load})
		}
		quiet := otcsim.Workload{UsedGB: 10}
		stalled := add("stalled", "rds.mysql.n1.large.4", 100, quiet)
		native := add("native", "rds.mysql.n1.large.4", 40, quiet)
		reset := add("reset", "rds.mysql.n1.large.4", 100, quiet)
		vain := add("vain", "rds.mysql.n1.large.4", 100, quiet)
		dry := add("dry", "rds.mysql.n1.large.4", 100, quiet)
		sold := add("sold", "rds.pg.n1.large.4", 100, quiet)
		filled := add("filled", "rds.mysql.n1.large.4", 100, quiet)
		resized := add("resized", "rds.mysql.n1.large.4", 100, quiet)
		s := f.start(flags{sweep: 2 * time.Minute})
		defer func() { s.stop() }()
		names := []string{"stalled", "native", "reset", "vain", "dry", "sold", "filled", "resized"}
		for _, name := range names {
			f.armedNow(at, name)
		}
		for _, name := range names {
			f.patch(f.raps(at), name, `{"spec":{"flavor":{"cooldownSeconds":0,"maxChangesPerDay":10,"maxVCPUs":64,"maxMemoryGB":256}}}`)
		}
		f.patch(f.raps(at), "dry", `{"spec":{"mode":"Recommend"}}`)
		larger, err := f.person().Flavors(t.Context(), "PostgreSQL", sold.Version)
		f.must(err)
		for _, l := range larger {
			if l.VCPUs > sold.VCPUs && l.Mode == "single" {
				f.sim.SetFlavorStatus(l.Code, "eu-de-01", otcsim.FlavorSoldOut)
			}
		}
		load := func(in otcsim.Instance, w otcsim.Workload) { f.must(f.sim.SetWorkload(in.ID, w)) }
		f.must(f.sim.ChangeInstance(native.ID, func(i *otcsim.Instance) { i.VolumeGB = 60 })) // by the cloud's own autoscaling
		load(stalled, otcsim.Workload{UsedGB: 93})
		load(native, otcsim.Workload{UsedGB: 52})
		load(reset, otcsim.Workload{UsedGB: 10, CPUDemand: 1.95})
		load(vain, otcsim.Workload{UsedGB: 10, MemoryDemandGB: 7.8})
		load(dry, otcsim.Workload{UsedGB: 93, CPUDemand: 1.95})
		load(sold, otcsim.Workload{UsedGB: 10, CPUDemand: 1.95})
		load(filled, otcsim.Workload{UsedGB: 93})
		load(resized, otcsim.Workload{UsedGB: 93})

		f.operate(at, "stalled", "dry", "native")

		step(t, "the operator is off: one step, then Stalled", func(t *testing.T) {
			f.until("it is stalled", func() bool { return f.decided(at, "stalled", "Stalled") })
			if v := f.volume(at, "stalled"); v != 110 {
				t.Errorf("spec.volumesize is %d, want one step to 110", v)
			}
		})
		step(t, "native growth is the new base", func(t *testing.T) {
			f.until("it grows from what the cloud has", func() bool { return f.volume(at, "native") == 70 })
		})
		step(t, "Recommend records and patches nothing", func(t *testing.T) {
			f.until("it has recommended", func() bool {
				return f.recommended(at, "dry", "GrowVolume", "110") && f.recommended(at, "dry", "ChangeFlavor", "rds.mysql.n1.xlarge.2")
			})
			if v := f.volume(at, "dry"); v != 100 {
				t.Errorf("spec.volumesize is %d", v)
			}
		})
		step(t, "a sold-out flavor does not hold storage back", func(t *testing.T) {
			f.until("it says sold out", func() bool { return f.decided(at, "sold", "SoldOut") })
			load(sold, otcsim.Workload{UsedGB: 93, CPUDemand: 1.95})
			f.until("its storage grows", func() bool { return f.volume(at, "sold") == 110 })
		})
		step(t, "a tool that takes the flavor back: one change, then Contested", func(t *testing.T) {
			const ours = "rds.mysql.n1.xlarge.2"
			f.until("the flavor changes", func() bool { return f.autopilot(at, "reset").Status.Pending == nil && f.completed(at, "reset", ours) })
			f.gitOps(at, "reset", `{"flavorref":"rds.mysql.n1.large.4"}`)
			f.until("it is contested", func() bool { return f.decided(at, "reset", "Contested") })
			a := f.autopilot(at, "reset")
			i := slices.IndexFunc(a.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionContested })
			if i < 0 || a.Status.Conditions[i].Status != metav1.ConditionTrue || !strings.Contains(a.Status.Conditions[i].Message, "a-gitops-tool") {
				t.Errorf("conditions %+v", a.Status.Conditions)
			}
			if n := f.changes(at, "reset", v1alpha1.ByAutopilot); n != 1 {
				t.Errorf("%d changes of ours, want 1", n)
			}
		})
		step(t, "memory that refills after every step: two changes, then NoEffect", func(t *testing.T) {
			for _, vcpus := range []int{4, 8} {
				f.until("the next flavor is there", func() bool { in, _ := f.sim.Instance(vain.ID); return in.VCPUs == vcpus })
				load(vain, otcsim.Workload{UsedGB: 10, MemoryDemandGB: 0.975 * 4 * float64(vcpus)})
			}
			f.until("it says so", func() bool { return f.decided(at, "vain", "NoEffect") })
			if n := f.changes(at, "vain", v1alpha1.ByAutopilot); n != 2 {
				t.Errorf("%d changes of ours, want 2", n)
			}
		})
		step(t, "a tool that takes the size back: the next growth is from what the cloud has", func(t *testing.T) {
			f.until("it is grown", func() bool { return f.completed(at, "resized", "110") })
			f.gitOps(at, "resized", `{"volumesize":100}`)
			f.sweeps(s, 2)
			if v, n := f.volume(at, "resized"), f.changes(at, "resized", v1alpha1.ByAutopilot); v != 100 || n != 1 {
				t.Errorf("without need it asks for %d GB after %d changes", v, n)
			}
			load(resized, otcsim.Workload{UsedGB: 103})
			f.until("it is grown again", func() bool { return f.completed(at, "resized", "120") })
			if n := f.changes(at, "resized", v1alpha1.ByAutopilot); n != 2 {
				t.Errorf("%d changes of ours, want 2", n)
			}
		})
		step(t, "the same used space never asks for a second step", func(t *testing.T) {
			f.until("it is grown", func() bool { return f.completed(at, "filled", "110") })
			for _, id := range []string{"1", "2"} {
				f.signal(at, "filled", strings.Repeat(id, 32), 93)
				f.sweeps(s, 2)
				s.stop()
				s = f.start(flags{sweep: 2 * time.Minute}) // another leader, which remembers nothing
				f.sweeps(s, 2)
			}
			if v, n := f.volume(at, "filled"), f.changes(at, "filled", v1alpha1.ByAutopilot); v != 110 || n != 1 {
				t.Errorf("spec.volumesize is %d after %d changes, want one to 110", v, n)
			}
		})
	})
}

// gitOps applies a part of the spec of an Rds as such a tool does.
func (f *fleet) gitOps(namespace, name, spec string) {
	f.t.Helper()
	apply := fmt.Appendf(nil, `{"apiVersion":"otc.mcsps.de/v1alpha1","kind":"Rds","metadata":{"name":%q},"spec":%s}`, name, spec)
	_, err := f.rdss(namespace).Patch(f.t.Context(), name, types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "a-gitops-tool", Force: new(true)})
	f.must(err)
}

// signal sends a signed alarm of the storage rule, of now, and waits until it is stored.
func (f *fleet) signal(namespace, name, id string, percent float64) {
	f.t.Helper()
	alarms := f.autopilot(namespace, name).Status.Alarms
	i := slices.IndexFunc(alarms.Rules, func(r v1alpha1.Rule) bool { return r.Metric == v1alpha1.MetricStorage })
	body, err := f.sim.SignedAlarm(id, alarms.TopicURN, alarms.Rules[i].AlarmID, percent)
	f.must(err)
	res, err := (&http.Client{Transport: f.routes}).Post(f.public+"/smn", "text/plain", bytes.NewReader(body))
	f.must(err)
	f.must(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		f.t.Fatalf("the signal is answered %s", res.Status)
	}
	f.until("the signal is stored", func() bool {
		return slices.ContainsFunc(f.autopilot(namespace, name).Status.Intake.Signals, func(s v1alpha1.Signal) bool { return s.MessageID == id })
	})
}

// operate applies at once what each Rds asks for, but for some, until the test ends.
func (f *fleet) operate(namespace string, but ...string) {
	done := make(chan struct{})
	go func() { defer close(done); f.apply(f.t.Context(), namespace, but) }()
	f.t.Cleanup(func() { <-done }) // the context has ended by then
}

func (f *fleet) apply(ctx context.Context, namespace string, but []string) {
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		list, err := f.rdss(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for _, o := range list.Items {
			if slices.Contains(but, o.GetName()) {
				continue
			}
			spec, status := o.Object["spec"].(map[string]any), o.Object["status"].(map[string]any)
			_ = f.sim.ChangeInstance(status["id"].(string), func(i *otcsim.Instance) {
				i.VolumeGB, i.Flavor = max(i.VolumeGB, int(spec["volumesize"].(int64))), spec["flavorref"].(string)
			})
		}
	}
}

func (f *fleet) volume(namespace, name string) int64 {
	o, err := f.rdss(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	f.must(err)
	return o.Object["spec"].(map[string]any)["volumesize"].(int64)
}

func (f *fleet) decided(namespace, name, reason string) bool {
	return slices.ContainsFunc(f.autopilot(namespace, name).Status.Decisions, func(d v1alpha1.DecisionRecord) bool { return d.Reason == reason })
}

func (f *fleet) recommended(namespace, name, action, to string) bool {
	return slices.ContainsFunc(f.autopilot(namespace, name).Status.Decisions, func(d v1alpha1.DecisionRecord) bool {
		return d.Reason == "Recommend" && d.Action == action && d.To == to
	})
}

func (f *fleet) completed(namespace, name, to string) bool {
	return slices.ContainsFunc(f.autopilot(namespace, name).Status.Changes, func(c v1alpha1.Change) bool {
		return c.To == to && c.Outcome == v1alpha1.OutcomeCompleted && c.By == v1alpha1.ByAutopilot
	})
}

func (f *fleet) changes(namespace, name string, by v1alpha1.Author) int {
	n := 0
	for _, c := range f.autopilot(namespace, name).Status.Changes {
		if c.By == by {
			n++
		}
	}
	return n
}
