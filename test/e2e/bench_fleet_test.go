// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	fleetVariable = "DATABASES" // how many
	fleetDefault  = 400
	fleetIdle     = 3 * time.Minute // Go collects garbage every two minutes even then
	fleetLook     = 2 * time.Second
	fleetSweep    = 10 * time.Second
	fleetSweeps   = time.Minute // over which the cost of one is taken
	fleetBurst    = 140         // databases that are armed at once, beside those that are
	fleetWriters  = 16          // of messages, and of what is made and put back, at a time
	fleetWorkers  = 64          // of the bare loop: as many as the service decides at a time
	fleetNoRate   = "100000"
	fleetRate     = 5 // the default of --cloud-rate
	fleetHistory  = 2 // changes and decisions in a short history
)

// BenchmarkFleet measures the real binary with a fleet: start, rest, sweep, storms of alarms, and arming. Each storm stands beside a
// bare loop of the same writes. ns/op says nothing here.
func BenchmarkFleet(b *testing.B) {
	size := fleetDefault
	if text := os.Getenv(fleetVariable); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			b.Fatalf("%s: %v", fleetVariable, err)
		}
	}
	f := newBenchFleet(b, size)
	b.Run("start", f.start)
	b.Run("rest", f.rest)
	b.Run("sweep", f.sweep)
	b.Run("storm", func(b *testing.B) { f.storms(b, fleetNoRate) })
	b.Run("storm-at-default-rate", func(b *testing.B) { f.storms(b, strconv.Itoa(fleetRate)) })
	b.Run("arming", f.arming)
	b.Run("storm-at-default-rate-short-history", func(b *testing.B) {
		f.shortenHistory(b)
		f.storms(b, strconv.Itoa(fleetRate))
	})
}

// benchFleet is a fleet that was armed long ago.
type benchFleet struct {
	*largeFleet
	size int
	rdss dynamic.ResourceInterface
	raps dynamic.ResourceInterface
	all  []v1alpha1.RdsAutopilot // as they are when nothing happens
}

func newBenchFleet(b *testing.B, size int) *benchFleet {
	c := newLargeFleet(b, size+fleetBurst)
	f := &benchFleet{
		largeFleet: c, size: size,
		rdss: c.client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(metav1.NamespaceDefault),
		raps: c.client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(metav1.NamespaceDefault),
	}
	progress("%d databases are made", size)
	if err := each(fleetWriters, size, func(i int) error { return c.add(fmt.Sprintf("db-%04d", i), simcloud.Workload{UsedGB: stormQuietGB}) }); err != nil {
		b.Fatal(err)
	}
	progress("and seen for the first time")
	p := f.serve(b)
	defer f.stop(b, p)
	f.all = f.listed(b, "armed", func(a *v1alpha1.RdsAutopilot) bool { return world.Armed(a) })
	return f
}

// progress is shown at once; what a benchmark logs comes at its end.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+" ── "+format+"\n", args...)
}

// serve starts the service as deploy/install.yaml does, and returns when its first sweep is over. It never sweeps again.
func (f *benchFleet) serve(b *testing.B, flags ...string) *world.Process {
	b.Helper()
	p, err := f.ServeIn(b.Context(), []string{"GOMEMLIMIT=" + largeFleetMemLimit},
		append([]string{"--sweep-interval", "24h", "--recheck-interval", "30s", "--cloud-rate", fleetNoRate}, flags...)...)
	if err != nil {
		b.Fatal(err)
	}
	f.quiet(b, p)
	return p
}

func (f *benchFleet) stop(b *testing.B, p *world.Process) {
	b.Helper()
	if err := p.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// quiet waits until the service has swept and has nothing to do. It asks seldom, for each answer costs something.
func (f *benchFleet) quiet(b *testing.B, p *world.Process) {
	b.Helper()
	for calm := 0; calm < 2; calm++ {
		time.Sleep(fleetLook / 2)
		m, err := p.Metrics(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if m.Sum("rds_autopilot_sweep_duration_seconds_count") == 0 || m.Sum("rds_autopilot_waiting_databases") > 0 {
			calm = -1
		}
	}
}

// listed waits until the condition holds of all. It looks seldom, for a list of a large fleet costs the API server a lot.
func (f *benchFleet) listed(b *testing.B, what string, holds func(*v1alpha1.RdsAutopilot) bool) []v1alpha1.RdsAutopilot {
	b.Helper()
	for {
		all, err := f.autopilots(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		left := 0
		for i := range all {
			if !holds(&all[i]) {
				left++
			}
		}
		if left == 0 {
			return all
		}
		progress("%d are not yet %s", left, what)
		time.Sleep(fleetLook)
	}
}

// start is the time until the caches are filled and the receiver listens.
func (f *benchFleet) start(b *testing.B) {
	var took, cpu []float64
	for b.Loop() {
		for range benchPairs {
			began := time.Now()
			p, err := f.ServeIn(b.Context(), nil, "--sweep-interval", "24h")
			if err != nil {
				b.Fatal(err)
			}
			for status := 0; status != http.StatusOK; {
				if status, _, err = p.Get(b.Context(), "/readyz"); err != nil {
					b.Fatal(err)
				}
			}
			took, cpu = append(took, time.Since(began).Seconds()), append(cpu, cpuSeconds(b, p.PID))
			f.stop(b, p)
		}
	}
	b.ReportMetric(median(took), "ready-s")
	b.ReportMetric(median(cpu), "cpu-s")
	b.ReportMetric(0, "ns/op")
}

// rest is what the service takes while nothing happens, between two sweeps.
func (f *benchFleet) rest(b *testing.B) {
	for b.Loop() {
		p := f.serve(b)
		peak := peakMiB(b, p.PID)
		progress("doing nothing for %v", fleetIdle)
		before := cpuSeconds(b, p.PID)
		time.Sleep(fleetIdle)
		b.ReportMetric(100*(cpuSeconds(b, p.PID)-before)/fleetIdle.Seconds(), "%core")
		reportMemory(b, p.PID)
		b.ReportMetric(float64(peak), "start-peak-MiB")
		f.stop(b, p)
	}
	b.ReportMetric(0, "ns/op")
}

// reportMemory tells what is resident, and how much of that is pages of the binary itself, which the kernel can take back.
func reportMemory(b *testing.B, pid int) {
	b.Helper()
	b.ReportMetric(float64(memoryKiB(b, pid, "VmRSS:"))/1024, "MiB")
	b.ReportMetric(float64(memoryKiB(b, pid, "RssFile:"))/1024, "of-binary-MiB")
}

// sweep is what a sweep costs that finds nothing to do.
func (f *benchFleet) sweep(b *testing.B) {
	for b.Loop() {
		p := f.serve(b, "--sweep-interval", fleetSweep.String())
		progress("sweeping for %v", fleetSweeps)
		swept := func() float64 {
			m, err := p.Metrics(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			return m.Sum("rds_autopilot_sweep_duration_seconds_count")
		}
		from, before := swept(), cpuSeconds(b, p.PID)
		time.Sleep(fleetSweeps) // reading the metrics costs CPU as well
		cost := cpuSeconds(b, p.PID) - before
		b.ReportMetric(cost/(swept()-from), "cpu-s/sweep")
		reportMemory(b, p.PID)
		b.ReportMetric(float64(peakMiB(b, p.PID)), "peak-MiB")
		f.stop(b, p)
	}
	b.ReportMetric(0, "ns/op")
}

// arming is the peak while many databases are armed at once.
func (f *benchFleet) arming(b *testing.B) {
	for b.Loop() {
		progress("arming %d more", fleetBurst)
		p := f.serve(b)
		resetPeak(b, p.PID)
		before := cpuSeconds(b, p.PID)
		began := time.Now()
		if err := each(fleetWriters, fleetBurst, func(i int) error { return f.addUnarmed(b.Context(), fmt.Sprintf("new-%04d", i)) }); err != nil {
			b.Fatal(err)
		}
		f.listed(b, "given their rules", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Alarms.Rules) == 3 })
		b.ReportMetric(time.Since(began).Seconds(), "s")
		b.ReportMetric(cpuSeconds(b, p.PID)-before, "cpu-s")
		b.ReportMetric(float64(peakMiB(b, p.PID)), "peak-MiB")
		f.stop(b, p)
	}
	b.ReportMetric(0, "ns/op")
}

func (f *benchFleet) addUnarmed(ctx context.Context, name string) error {
	in, err := f.Cloud.AddInstance(simcloud.Instance{Name: name, Flavor: largeFleetFlavor, VolumeGB: stormSizeGB, Workload: simcloud.Workload{UsedGB: stormQuietGB}})
	if err == nil {
		_, err = f.rdss.Create(ctx, rdsOf(in, true), metav1.CreateOptions{})
	}
	return err
}

// resetPeak has the kernel forget the most memory that a process ever had (proc(5), clear_refs).
func resetPeak(b *testing.B, pid int) {
	b.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}
