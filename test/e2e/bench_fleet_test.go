// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
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
	must(b, err)
	for calm := 0; calm < 2; calm++ { // it has swept, and twice there is nothing to do
		time.Sleep(time.Second) // each answer costs the service something
		m, err := p.Metrics(b.Context())
		must(b, err)
		if m.Sum(sweepsOfProcess) == 0 || m.Sum("rds_autopilot_waiting_databases") > 0 {
			calm = -1
		}
	}
	return p
}

func (f *fleet) stop(b *testing.B, p *world.Process) {
	b.Helper()
	must(b, p.Stop(b.Context()))
}

// start measures the time until the caches are filled and the receiver listens.
func (f *fleet) start(b *testing.B) {
	found := figures{}
	for b.Loop() {
		for range benchPairs {
			began := time.Now()
			p, err := f.ServeIn(b.Context(), nil, "--sweep-interval", "24h")
			must(b, err)
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
		must(b, err)
		f.waitForAll(b, "given their rules", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Alarms.Rules) == 3 })
		found.add("s", time.Since(began).Seconds())
		found.add("cpu-s", cpuSeconds(b, p.PID)-before)
		found.add("peak-MiB", peakMiB(b, p.PID))
		f.stop(b, p)
	}
	found.report(b)
}

const (
	fleetFlavor  = "rds.mysql.n1.large.4"
	fleetSpeed   = 12  // of the cloud: two cores cannot do more for the whole world
	fleetBurst   = 140 // databases that are armed at once, in addition to the fleet
	fleetWriters = 16  // goroutines that send messages, and create and reset databases
)

// fleet is a fleet that the service has armed.
type fleet struct {
	*world.World
	size       int
	rdss, raps dynamic.ResourceInterface
	all        []v1alpha1.RdsAutopilot // before the first storm
}

func newFleet(b *testing.B, size int) *fleet {
	b.Helper()
	f := &fleet{size: size, World: shared.StartAlone(b, world.Options{
		Resync: time.Hour,
		Cloud: simcloud.Options{
			Speed: fleetSpeed, Settings: simcloud.Settings{RuleQuota: 4 * (size + fleetBurst)},
			// The benchmark measures the loop, and two cores cannot carry a storm of messages too.
			DeliveryFault: func(d simcloud.Delivery) simcloud.DeliveryFault {
				return simcloud.DeliveryFault{Drop: d.Type == simcloud.TypeNotification}
			},
		},
	})}
	f.Operator.Pause()
	client, err := dynamic.NewForConfig(f.Kube.Config())
	must(b, err)
	f.rdss = client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(metav1.NamespaceDefault)
	f.raps = client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(metav1.NamespaceDefault)
	progress("creating %d databases", size)
	must(b, each(fleetWriters, size, func(i int) error { return f.add(b.Context(), fmt.Sprintf("db-%04d", i)) }))
	p := f.serve(b) // sees them for the first time
	defer f.stop(b, p)
	f.all = f.waitForAll(b, "armed", world.Armed)
	return f
}

// progress prints a line at once. What a benchmark logs is printed at its end.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+" ── "+format+"\n", args...)
}

// each calls do with 0 to size-1, several at a time.
func each(atATime, size int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range size {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// waitForAll waits until a condition holds for all RdsAutopilots, and returns them. It asks rarely, because a list of a large
// fleet costs the API server much.
func (f *fleet) waitForAll(b *testing.B, what string, holds func(*v1alpha1.RdsAutopilot) bool) []v1alpha1.RdsAutopilot {
	b.Helper()
	for {
		list, err := f.raps.List(b.Context(), metav1.ListOptions{ResourceVersion: "0"}) // from the API server's cache
		must(b, err)
		all := make([]v1alpha1.RdsAutopilot, len(list.Items))
		missing := 0
		for i, u := range list.Items {
			must(b, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &all[i]))
			if !holds(&all[i]) {
				missing++
			}
		}
		if missing == 0 {
			return all
		}
		progress("%d are not yet %s", missing, what)
		time.Sleep(2 * time.Second)
	}
}

// createInstance creates an instance and its Rds.
func (f *fleet) createInstance(ctx context.Context, name string, autopilot bool) error {
	in, err := f.Cloud.AddInstance(simcloud.Instance{Name: name, Flavor: fleetFlavor, VolumeGB: stormSizeGB, Workload: simcloud.Workload{UsedGB: stormQuietGB}})
	if err != nil {
		return err
	}
	spec := map[string]any{
		"datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor, "volumetype": in.VolumeType, "volumesize": int64(in.VolumeGB),
	}
	if autopilot {
		spec["autopilot"] = true
	}
	_, err = f.rdss.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind, "metadata": map[string]any{"name": in.Name},
		"spec": spec, "status": map[string]any{"id": in.ID, "status": in.Status},
	}}, metav1.CreateOptions{})
	return err
}

// add creates a database whose storage alarm needs one measurement.
func (f *fleet) add(ctx context.Context, name string) error {
	if err := f.createInstance(ctx, name, false); err != nil {
		return err
	}
	_, err := f.raps.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"storage": map[string]any{"alarm": map[string]any{"count": int64(1)}}},
	}}, metav1.CreateOptions{})
	return err
}

// peakMiB returns the largest resident memory that a process has had since its start, or since resetPeak.
func peakMiB(b *testing.B, pid int) float64 { return memoryMiB(b, pid, "VmHWM:") }

// resetPeak makes the kernel forget the largest resident memory of a process (proc(5), clear_refs).
func resetPeak(b *testing.B, pid int) {
	b.Helper()
	must(b, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0))
}

// memoryMiB returns a value of /proc/PID/status, which is in KiB there (proc_pid_status(5)).
func memoryMiB(b testing.TB, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("needs /proc")
	}
	found := regexp.MustCompile(name + `\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		b.Fatalf("the kernel reports no %s", name)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	must(b, err)
	return kib / 1024
}

// cpuSeconds returns the CPU time that a process has used on all cores.
func cpuSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(text), ") ") // the name before it may contain blanks
	fields := strings.Fields(rest)
	var ticks float64
	for _, i := range []int{11, 12} { // user and system time, in hundredths of a second (proc_pid_stat(5))
		n, err := strconv.ParseFloat(fields[i], 64)
		must(b, err)
		ticks += n
	}
	return ticks / 100
}
