// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/world"
)

// upPolicy lets a flavor change without the hour that lies between two changes otherwise.
const upPolicy = `{"flavor":{"cooldownSeconds":5,"maxChangesPerDay":10}}`

// upGrowth is how fast the database that runs out of storage fills up, in GB per minute of the cloud.
const upGrowth = 0.2

// up keeps a world with the service running until the context ends. People change the load of its databases.
func up(ctx context.Context, out *console, o worldOptions) (err error) {
	n := newNarrator(out)
	for _, p := range plans() {
		n.names = append(n.names, p.Name)
	}
	out.print("%sStarting:   Kubernetes, the cloud and rds-autopilot …\n", o.head())
	w, err := world.Start(ctx, o.apply(n.options()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	out.restart()
	service, err := w.Serve(ctx)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	dbs := map[string]*world.DB{}
	for _, p := range plans() {
		p.Autopilot = false // the RdsAutopilot below turns it on
		db, err := w.AddDatabase(ctx, p.Database)
		if err != nil {
			return err
		}
		if err := db.CreateAutopilot(ctx, upPolicy); err != nil {
			return err
		}
		dbs[p.Name] = db
		running.Go(func() { n.watch(ctx, db, p.created()) })
		if p.metric == v1alpha1.MetricStorage {
			running.Go(func() { keepGrowing(ctx, db, w.Span(time.Minute)) })
		}
	}
	address, err := serveLoads(ctx, dbs, &running)
	if err != nil {
		return err
	}
	out.print(instructions, service.AdminURL, address, w.AdminKubeconfig())
	<-ctx.Done()
	out.print("\nEnding, and removing everything …\n")
	return nil
}

const instructions = `
  Status page     %s/
  Change a load   curl -d used=34 %[2]s/orders   (GB; cpu=95 or memory=95 in percent, of orders, shop or reports)
  In a terminal   export KUBECONFIG=%[3]s; kubectl get rds,rap   (only with KUBE=real)

The disk of orders fills up by itself. Ctrl-C ends it and removes everything. Times are hours and minutes of the cloud.

`

// keepGrowing fills the disk of a database, each minute of the cloud.
func keepGrowing(ctx context.Context, db *world.DB, minute time.Duration) {
	tick := time.NewTicker(minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		in := db.Instance()
		in.Workload.UsedGB = min(in.Workload.UsedGB+upGrowth, float64(in.VolumeGB))
		_ = db.SetWorkload(in.Workload) // fails only for an instance that is gone
	}
}

// serveLoads answers the requests that change the load of a database, and returns its URL.
func serveLoads(ctx context.Context, dbs map[string]*world.DB, running *sync.WaitGroup) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for changes of the load: %w", err)
	}
	handler := http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		db := dbs[strings.TrimPrefix(r.URL.Path, "/")]
		if db == nil {
			http.NotFound(w, r)
			return
		}
		text, err := setLoad(db, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, text)
	}))
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	running.Go(func() { _ = server.Serve(listener) }) // ends with http.ErrServerClosed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return "http://" + listener.Addr().String(), nil
}

// setLoad sets what a form contains: used in GB, cpu and memory in percent of what the instance has now.
func setLoad(db *world.DB, r *http.Request) (string, error) {
	in := db.Instance()
	for field, set := range map[string]func(float64){
		"used":   func(v float64) { in.Workload.UsedGB = min(v, float64(in.VolumeGB)) },
		"cpu":    func(v float64) { in.Workload.CPUDemand = v / 100 * float64(in.VCPUs) },
		"memory": func(v float64) { in.Workload.MemoryDemandGB = v / 100 * float64(in.MemoryGB) },
	} {
		text := r.FormValue(field)
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0) {
			return "", fmt.Errorf("%s must be a number of at least 0, not %q", field, text)
		}
		set(v)
	}
	load := in.Workload
	return fmt.Sprintf("%s has %s: %.1f GB used, %.1f vCPUs busy, %.1f GB of memory used",
		db.Name, size(in), load.UsedGB, load.CPUDemand, load.MemoryDemandGB), db.SetWorkload(load)
}
