// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Where the service is expected to listen when it is started by hand.
const (
	webhookAddr = "127.0.0.1:8080"
	adminAddr   = "127.0.0.1:9090"
)

// upPolicy lets a flavor change without the hour that lies between two changes otherwise.
const upPolicy = `{"flavor":{"cooldownSeconds":5,"maxChangesPerDay":10}}`

// up keeps a world running, whose databases have more and more to do, and says how to start the service in it.
func up(ctx context.Context, out *console) (err error) {
	n := narrator{console: out}
	out.printStep(actorDemo, "", "starts kube-apiserver, etcd, the simulated cloud and a stand-in for the operator")
	all := plans()
	for _, p := range all {
		n.names = append(n.names, p.Name)
	}
	w, err := world.Start(ctx, n.options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	w.Ingress.Set("http://" + webhookAddr)
	var running sync.WaitGroup
	defer running.Wait()
	for _, p := range all {
		p.Autopilot = false // the operator would drop it before the service is there to see it
		db, err := w.AddDatabase(ctx, p.Database)
		if err != nil {
			return err
		}
		if err := db.CreateAutopilot(ctx, upPolicy); err != nil {
			return err
		}
		out.printStep(actorKubernetes, p.Name, "Rds and RdsAutopilot created: %s", p)
		running.Go(func() { n.watch(ctx, db, p.created()) })
		running.Go(func() { n.watchCloud(ctx, db) })
		running.Go(func() { keepBusy(ctx, w, db, p) })
	}
	out.print("%s", instructions(w))
	<-ctx.Done()
	out.print("\n")
	return nil
}

// instructions are what to type in another terminal.
func instructions(w *world.World) string {
	var text strings.Builder
	line := func(parts ...string) { text.WriteString("  " + strings.Join(parts, " ") + "\n") }
	text.WriteString("\nThe world is up; an interrupt ends it. In another terminal:\n\n")
	for _, kv := range w.Cloud.Env() {
		line("export " + kv)
	}
	args := append(w.ServeArgs(), "--webhook-addr", webhookAddr, "--admin-addr", adminAddr)
	text.WriteString("\n  bin/rds-autopilot serve")
	for i := 1; i+1 < len(args); i += 2 {
		text.WriteString(" \\\n    " + args[i] + " " + args[i+1])
	}
	text.WriteString("\n\nand to look at it:\n\n")
	line("open http://" + adminAddr + "/ in a browser, or curl -s http://" + adminAddr + "/metrics")
	line("kubectl --kubeconfig", w.Kube.Kubeconfig(), "get rds,rap")
	text.WriteString("\n")
	return text.String()
}

// keepBusy gives a database a little more to do every minute of the cloud: of what it is to run out of.
func keepBusy(ctx context.Context, w *world.World, db *world.DB, p plan) {
	tick := time.NewTicker(w.Span(time.Minute))
	defer tick.Stop()
	for load := p.Workload; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch in := db.Instance(); p.metric {
		case v1alpha1.MetricCPU:
			load.CPUDemand = min(load.CPUDemand+0.2, float64(in.VCPUs))
		case v1alpha1.MetricMemory:
			load.MemoryDemandGB = min(load.MemoryDemandGB+0.1, float64(in.MemoryGB))
		default:
			load.UsedGB = min(load.UsedGB+0.5, float64(in.VolumeGB))
		}
		if db.SetWorkload(load) != nil { // the instance is gone
			return
		}
	}
}
