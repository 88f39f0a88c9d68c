// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	fleetPairs     = 3           // storms, each with its bare loop
	fleetVariable  = "DATABASES" // how many
	fleetDefault   = 400
	fleetIdle      = 30 * time.Second
	fleetLook      = 2 * time.Second
	fleetSweep     = 10 * time.Second
	fleetSweeps    = time.Minute // over which the cost of one is taken
	fleetBurst     = 140         // databases that are armed at once, beside those that are
	fleetWriters   = 16          // at a time: of the bare loop, and senders of messages
	fleetNoRate    = "100000"
	fleetRate      = 5 // the default of --cloud-rate
	stormSeriesGB  = 100
	stormUsedGB    = 93
	stormWantsGB   = 110
	stormQuietGB   = 10
	stormIntentDay = "2026-01-01T00:00:00.000000Z"
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
	b.Run("storm", func(b *testing.B) { f.storms(b, fleetPairs, fleetNoRate) })
	b.Run("storm-at-default-rate", func(b *testing.B) { f.storms(b, 1, strconv.Itoa(fleetRate)) })
	b.Run("arming", f.arming)
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
	f.each(b, size, func(i int) error { return c.add(fmt.Sprintf("db-%04d", i), otcsim.Workload{UsedGB: stormQuietGB}) })
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

// each calls do for so many, some at a time.
func (f *benchFleet) each(b *testing.B, size int, do func(i int) error) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(fleetWriters)
	for i := range size {
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// serve starts the service as deploy/install.yaml does, and returns when its first sweep is over. It never sweeps again.
func (f *benchFleet) serve(b *testing.B, flags ...string) *world.Process {
	b.Helper()
	p, err := f.ServeIn(b.Context(), []string{"GOMEMLIMIT=" + largeFleetMemLimit},
		append([]string{"--sweep-interval", "24h", "--cloud-rate", fleetNoRate}, flags...)...)
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

// quiet waits until the service has swept and has nothing to do.
func (f *benchFleet) quiet(b *testing.B, p *world.Process) {
	b.Helper()
	calm := 0
	err := world.Eventually(b.Context(), "nothing waits", func(ctx context.Context) (bool, error) {
		m, err := p.Metrics(ctx)
		if calm++; err == nil && (m.Sum("rds_autopilot_sweep_duration_seconds_count") == 0 || m.Sum("rds_autopilot_waiting_databases") > 0) {
			calm = 0
		}
		return calm > 5, err
	})
	if err != nil {
		b.Fatal(err)
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
		for range fleetPairs {
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
		time.Sleep(fleetSweeps) // whoever asks for metrics costs something as well
		cost := cpuSeconds(b, p.PID) - before
		b.ReportMetric(cost/(swept()-from), "cpu-s/sweep")
		reportMemory(b, p.PID)
		b.ReportMetric(float64(peakMiB(b, p.PID)), "peak-MiB")
		f.stop(b, p)
	}
	b.ReportMetric(0, "ns/op")
}

// storms has all databases alarm at once, so often, and a bare loop make the same writes before each.
func (f *benchFleet) storms(b *testing.B, times int, rate string) {
	var ratioLast, ratioMiddle, last, middle, bareLast, bareMiddle, cpu, peak []float64
	var calls, atRate float64
	for b.Loop() {
		for i := range times {
			progress("storm %d of %d", i+1, times)
			bl, bm := f.arrivals(b, func() { f.each(b, f.size, func(i int) error { return f.bareWrites(b.Context(), &f.all[i]) }) })
			f.reset(b)
			p := f.serve(b, "--cloud-rate", rate)
			messages := f.alarm(b)
			resetPeak(b, p.PID)
			f.Cloud.ResetRequests()
			before := cpuSeconds(b, p.PID)
			l, m := f.arrivals(b, func() { f.post(b, p.WebhookURL+"/smn", messages) })
			cpu, peak = append(cpu, cpuSeconds(b, p.PID)-before), append(peak, float64(peakMiB(b, p.PID)))
			for _, service := range []string{"ces", "rds", "smn"} {
				n := float64(f.Cloud.Count(service, ""))
				calls, atRate = max(calls, n), max(atRate, (n-fleetRate)/fleetRate)
			}
			f.stop(b, p)
			f.reset(b)
			ratioLast, ratioMiddle = append(ratioLast, l/bl), append(ratioMiddle, m/bm)
			last, middle, bareLast, bareMiddle = append(last, l), append(middle, m), append(bareLast, bl), append(bareMiddle, bm)
			progress("last %.1f s (bare loop %.1f), p50 %.1f s (%.1f), %.1f s of CPU, peak %.0f MiB, %v calls", l, bl, m, bm, cpu[len(cpu)-1], peak[len(peak)-1], calls)
		}
	}
	b.ReportMetric(median(last), "last-s")
	b.ReportMetric(median(middle), "p50-s")
	b.ReportMetric(median(cpu), "cpu-s")
	b.ReportMetric(median(peak), "peak-MiB")
	b.ReportMetric(calls, "calls")
	if rate != fleetNoRate {
		b.ReportMetric(atRate, "calls-take-s")
		b.ReportMetric(median(last)/atRate, "last×calls")
	} else {
		b.ReportMetric(median(ratioLast), "last×bare")
		b.ReportMetric(median(ratioMiddle), "p50×bare")
		b.ReportMetric(median(bareLast), "bare-last-s")
		b.ReportMetric(median(bareMiddle), "bare-p50-s")
	}
	b.ReportMetric(0, "ns/op")
}

// arrivals are the seconds from when do begins until all of the fleet ask for more, and half of them.
func (f *benchFleet) arrivals(b *testing.B, do func()) (last, middle float64) {
	b.Helper()
	watching, err := f.rdss.Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer watching.Stop()
	began := time.Now()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	at := map[string]float64{}
	deadline := time.After(world.Patience)
	for len(at) < f.size {
		select {
		case e := <-watching.ResultChan():
			rds, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				b.Fatalf("watch: %v", e.Object)
			}
			size, _, _ := unstructured.NestedInt64(rds.Object, "spec", "volumesize")
			if _, known := at[rds.GetName()]; !known && size == stormWantsGB {
				at[rds.GetName()] = time.Since(began).Seconds()
			}
		case <-deadline:
			b.Fatalf("%d of %d ask for more", len(at), f.size)
		}
	}
	<-done
	var sorted []float64
	for _, t := range at {
		sorted = append(sorted, t)
	}
	slices.Sort(sorted)
	return sorted[len(sorted)-1], sorted[len(sorted)/2]
}

// bareWrites are those of the service for one alarm, without any thought: the signal, the intent, the Rds and the outcome.
func (f *benchFleet) bareWrites(ctx context.Context, a *v1alpha1.RdsAutopilot) error {
	signal := map[string]any{
		"metric": "storage", "alarmID": a.Status.Alarms.Rules[0].AlarmID, "state": "alarm", "valuePercent": "93", "datapointTime": stormIntentDay,
		"alarmTime": stormIntentDay, "messageID": a.Status.Decisions[0].MessageID, "receivedTime": stormIntentDay,
	}
	intent := map[string]any{
		"kind": "Volume", "metrics": []string{"storage"}, "from": strconv.Itoa(stormSeriesGB), "to": strconv.Itoa(stormWantsGB),
		"evidenceTime": stormIntentDay, "valuePercent": "93.0", "decisionTime": stormIntentDay, "generation": 1,
	}
	for _, status := range []map[string]any{
		{"intake": map[string]any{"signals": []any{signal}}},
		{"pending": intent, "decisions": a.Status.Decisions},
		nil,
		{"decisions": a.Status.Decisions[1:]},
	} {
		if status == nil {
			patch := fmt.Sprintf(`[{"op":"test","path":"/status/id","value":%q},{"op":"test","path":"/spec/volumesize","value":%d},{"op":"replace","path":"/spec/volumesize","value":%d}]`,
				a.Status.Instance.ID, stormSeriesGB, stormWantsGB)
			if _, err := f.rdss.Patch(ctx, a.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				return err
			}
			continue
		}
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		if _, err := f.raps.Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status"); err != nil {
			return err
		}
	}
	return nil
}

// reset puts everything back to how it was before a storm.
func (f *benchFleet) reset(b *testing.B) {
	b.Helper()
	ctx := b.Context()
	f.each(b, f.size, func(i int) error {
		a := &f.all[i]
		if err := f.Cloud.SetWorkload(a.Status.Instance.ID, otcsim.Workload{UsedGB: stormQuietGB}); err != nil {
			return err
		}
		status, err := json.Marshal(a.Status)
		if err != nil {
			return err
		}
		patch := fmt.Appendf(nil, `[{"op":"replace","path":"/status","value":%s}]`, status)
		if _, err := f.raps.Patch(ctx, a.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
		_, err = f.rdss.Patch(ctx, a.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"volumesize":%d}}`, stormSeriesGB), metav1.PatchOptions{})
		return err
	})
	f.settled(b, otcsim.StateOK)
}

// alarm fills all volumes, waits until Cloud Eye says so, and returns a message for each.
func (f *benchFleet) alarm(b *testing.B) [][]byte {
	b.Helper()
	for i := range f.all {
		if err := f.Cloud.SetWorkload(f.all[i].Status.Instance.ID, otcsim.Workload{UsedGB: stormUsedGB}); err != nil {
			b.Fatal(err)
		}
	}
	f.settled(b, otcsim.StateAlarm)
	messages := make([][]byte, f.size)
	f.each(b, f.size, func(i int) (err error) {
		a := &f.all[i].Status
		messages[i], err = f.Cloud.SignedAlarm(fmt.Sprintf("%032x", time.Now().UnixNano()), a.Alarms.TopicURN, a.Alarms.Rules[0].AlarmID, stormUsedGB)
		return err
	})
	return messages
}

// settled waits until all storage rules are in a state, and the newest datapoints say the same.
func (f *benchFleet) settled(b *testing.B, state otcsim.RuleState) {
	b.Helper()
	time.Sleep(f.Span(2 * time.Minute))
	err := world.Eventually(b.Context(), "the storage rules are in "+string(state), func(context.Context) (bool, error) {
		return !slices.ContainsFunc(f.Cloud.Rules(), func(r otcsim.Rule) bool { return r.Metric.MetricName == "rds039_disk_util" && r.State != state }), nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// post sends the messages at once.
func (f *benchFleet) post(b *testing.B, url string, messages [][]byte) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: fleetWriters}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	f.each(b, len(messages), func(i int) error {
		for {
			answer, err := client.Post(url, "application/json", bytes.NewReader(messages[i]))
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			time.Sleep(time.Second) // SMN sends again
		}
	})
}

// arming is the peak while many databases are armed at once.
func (f *benchFleet) arming(b *testing.B) {
	for b.Loop() {
		progress("arming %d more", fleetBurst)
		p := f.serve(b)
		resetPeak(b, p.PID)
		before := cpuSeconds(b, p.PID)
		began := time.Now()
		f.each(b, fleetBurst, func(i int) error { return f.addUnarmed(b.Context(), fmt.Sprintf("new-%04d", i)) })
		f.listed(b, "given their rules", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Alarms.Rules) == 3 })
		b.ReportMetric(time.Since(began).Seconds(), "s")
		b.ReportMetric(cpuSeconds(b, p.PID)-before, "cpu-s")
		b.ReportMetric(float64(peakMiB(b, p.PID)), "peak-MiB")
		f.stop(b, p)
	}
	b.ReportMetric(0, "ns/op")
}

func (f *benchFleet) addUnarmed(ctx context.Context, name string) error {
	in, err := f.Cloud.AddInstance(otcsim.Instance{Name: name, Flavor: largeFleetFlavor, VolumeGB: stormSeriesGB, Workload: otcsim.Workload{UsedGB: stormQuietGB}})
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
