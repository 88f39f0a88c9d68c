// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	fleetIdle       = 3 * time.Minute // longer than the two minutes after which Go collects garbage even when idle
	fleetNoRate     = "100000"
	fleetMemory     = "256000000" // bytes; GOMEMLIMIT as in deploy/install.yaml
	sweepsOfProcess = "rds_autopilot_sweep_duration_seconds_count"
)

// BenchmarkFleet measures the real binary with a fleet of DATABASES (400): start, rest, storms of alarms, and
// arming. Each storm has a bare loop of the same writes for comparison. ns/op has no meaning here.
func BenchmarkFleet(b *testing.B) {
	size := 400
	if text := os.Getenv("DATABASES"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			b.Fatal("DATABASES:", err)
		}
	}
	f := newFleet(b, size)
	b.Run("start", f.start)
	b.Run("rest", f.rest)
	b.Run("storm", f.storms)
	b.Run("arming", f.arming)
}

// serve starts the service as deploy/install.yaml does, and returns when its first sweep is over. It never sweeps again.
func (f *fleet) serve(b *testing.B, flags ...string) *world.Process {
	b.Helper()
	p, err := f.ServeIn(b.Context(), []string{"GOMEMLIMIT=" + fleetMemory},
		append([]string{"--sweep-interval", "24h", "--recheck-interval", "30s", "--cloud-rate", fleetNoRate}, flags...)...)
	if err != nil {
		b.Fatal(err)
	}
	for calm := 0; calm < 2; calm++ { // it has swept, and twice there is nothing to do
		time.Sleep(time.Second) // each answer costs the service something
		m, err := p.Metrics(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if m.Sum(sweepsOfProcess) == 0 || m.Sum("rds_autopilot_waiting_databases") > 0 {
			calm = -1
		}
	}
	return p
}

func (f *fleet) stop(b *testing.B, p *world.Process) {
	b.Helper()
	if err := p.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// start measures the time until the caches are filled and the receiver listens.
func (f *fleet) start(b *testing.B) {
	found := figures{}
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
			found.add("ready-s", time.Since(began).Seconds())
			found.add("cpu-s", cpuSeconds(b, p.PID))
			f.stop(b, p)
		}
	}
	found.report(b)
}

// rest measures the service while nothing happens, between two sweeps.
func (f *fleet) rest(b *testing.B) {
	found := figures{}
	for b.Loop() {
		p := f.serve(b)
		found.add("start-peak-MiB", peakMiB(b, p.PID))
		progress("doing nothing for %v", fleetIdle)
		before := cpuSeconds(b, p.PID)
		time.Sleep(fleetIdle)
		found.add("%core", 100*(cpuSeconds(b, p.PID)-before)/fleetIdle.Seconds())
		found.add("MiB", memoryMiB(b, p.PID, "VmRSS:"))
		found.add("of-binary-MiB", memoryMiB(b, p.PID, "RssFile:")) // the kernel can reclaim these pages
		f.stop(b, p)
	}
	found.report(b)
}

// arming measures the service while many databases are armed at once.
func (f *fleet) arming(b *testing.B) {
	found := figures{}
	for b.Loop() {
		progress("arming %d more", fleetBurst)
		p := f.serve(b)
		resetPeak(b, p.PID)
		before := cpuSeconds(b, p.PID)
		began := time.Now()
		err := each(fleetWriters, fleetBurst, func(i int) error {
			return f.createInstance(b.Context(), fmt.Sprintf("new-%04d", i), true)
		})
		if err != nil {
			b.Fatal(err)
		}
		f.waitForAll(b, "given their rules", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Alarms.Rules) == 3 })
		found.add("s", time.Since(began).Seconds())
		found.add("cpu-s", cpuSeconds(b, p.PID)-before)
		found.add("peak-MiB", peakMiB(b, p.PID))
		f.stop(b, p)
	}
	found.report(b)
}
