// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// TestDecisionsOfAFleet runs situations that last for several rounds in one service, with Kubernetes and the cloud in memory.
func TestDecisionsOfAFleet(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, simcloud.Settings{})
		f.runCloud()
		const at = "decisions"
		f.namespace(at)
		add := func(name, flavor string, volumeGB int, load simcloud.Workload) simcloud.Instance {
			return f.database(at, name, simcloud.Instance{Flavor: flavor, VolumeGB: volumeGB, Workload: load})
		}
		quiet := simcloud.Workload{UsedGB: 10}
		stalled := add("stalled", "rds.mysql.n1.large.4", 100, quiet)
		vain := add("vain", "rds.mysql.n1.large.4", 100, quiet)
		dry := add("dry", "rds.mysql.n1.large.4", 100, quiet)
		sold := add("sold", "rds.pg.n1.large.4", 100, quiet)
		filled := add("filled", "rds.mysql.n1.large.4", 100, quiet)
		s := f.start(flags{sweep: 2 * time.Minute})
		defer func() { s.stop() }()
		names := []string{"stalled", "vain", "dry", "sold", "filled"}
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
				f.sim.SetFlavorStatus(l.Code, "eu-de-01", simcloud.FlavorSoldOut)
			}
		}
		load := func(in simcloud.Instance, w simcloud.Workload) { f.must(f.sim.SetWorkload(in.ID, w)) }
		load(stalled, simcloud.Workload{UsedGB: 93})
		load(vain, simcloud.Workload{UsedGB: 10, MemoryDemandGB: 7.8})
		load(dry, simcloud.Workload{UsedGB: 93, CPUDemand: 1.95})
		load(sold, simcloud.Workload{UsedGB: 10, CPUDemand: 1.95})
		load(filled, simcloud.Workload{UsedGB: 93})

		f.operate(at, "stalled", "dry")

		step(t, "the operator is off: one step, then Stalled", func(t *testing.T) {
			f.until("it is stalled", func() bool { return f.decided(at, "stalled", "Stalled") })
			if v := f.volume(at, "stalled"); v != 110 {
				t.Errorf("spec.volumesize is %d, want one step to 110", v)
			}
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
			load(sold, simcloud.Workload{UsedGB: 93, CPUDemand: 1.95})
			f.until("its storage grows", func() bool { return f.volume(at, "sold") == 110 })
		})
		step(t, "memory that refills after every step: two changes, then NoEffect", func(t *testing.T) {
			for _, vcpus := range []int{4, 8} {
				f.until("the next flavor is there", func() bool { in, _ := f.sim.Instance(vain.ID); return in.VCPUs == vcpus })
				load(vain, simcloud.Workload{UsedGB: 10, MemoryDemandGB: 0.975 * 4 * float64(vcpus)})
			}
			f.until("it says so", func() bool { return f.decided(at, "vain", "NoEffect") })
			if n := f.changes(at, "vain", v1alpha1.ByAutopilot); n != 2 {
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
			_ = f.sim.ChangeInstance(status["id"].(string), func(i *simcloud.Instance) {
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
