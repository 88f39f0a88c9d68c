// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	stormSizeGB    = 100
	stormUsedGB    = 93
	stormWantsGB   = 110
	stormQuietGB   = 10
	stormIntentDay = "2026-01-01T00:00:00.000000Z"
)

// storms has all databases alarm at once, and a bare loop make the same writes before each time.
func (f *benchFleet) storms(b *testing.B, rate string) {
	var ratioLast, ratioMiddle, ratioCalls, last, middle, bareLast, bareMiddle, calls, atRate, cpu, peak []float64
	for b.Loop() {
		for i := range benchPairs {
			progress("storm %d of %d", i+1, benchPairs)
			bl, bm := f.bareLoop(b)
			f.reset(b)
			p := f.serve(b, "--cloud-rate", rate)
			messages := f.alarm(b)
			resetPeak(b, p.PID)
			f.Cloud.ResetRequests()
			before := cpuSeconds(b, p.PID)
			l, m := f.arrivals(b, func() error { return post(p.WebhookURL+"/smn", messages) })
			cpu, peak = append(cpu, cpuSeconds(b, p.PID)-before), append(peak, float64(peakMiB(b, p.PID)))
			n := float64(max(f.Cloud.Count("ces", ""), f.Cloud.Count("rds", ""), f.Cloud.Count("smn", ""))) // each has a rate of its own
			take := (n - fleetRate) / fleetRate
			calls, atRate, ratioCalls = append(calls, n), append(atRate, take), append(ratioCalls, l/take)
			f.stop(b, p)
			f.reset(b)
			ratioLast, ratioMiddle = append(ratioLast, l/bl), append(ratioMiddle, m/bm)
			last, middle, bareLast, bareMiddle = append(last, l), append(middle, m), append(bareLast, bl), append(bareMiddle, bm)
			progress("last %.1f s (bare loop %.1f), p50 %.1f s (%.1f), %.1f s of CPU, peak %.0f MiB, %v calls", l, bl, m, bm, cpu[len(cpu)-1], peak[len(peak)-1], n)
		}
	}
	b.ReportMetric(median(last), "last-s")
	b.ReportMetric(median(middle), "p50-s")
	b.ReportMetric(median(cpu), "cpu-s")
	b.ReportMetric(median(peak), "peak-MiB")
	b.ReportMetric(median(calls), "calls")
	if rate != fleetNoRate {
		b.ReportMetric(median(atRate), "calls-take-s")
		b.ReportMetric(median(ratioCalls), "last×calls")
	}
	b.ReportMetric(median(ratioLast), "last×bare")
	b.ReportMetric(median(ratioMiddle), "p50×bare")
	b.ReportMetric(median(bareLast), "bare-last-s")
	b.ReportMetric(median(bareMiddle), "bare-p50-s")
	b.ReportMetric(0, "ns/op")
}

// arrivals are the seconds from when do begins until all of the fleet ask for more, and half of them.
func (f *benchFleet) arrivals(b *testing.B, do func() error) (last, middle float64) {
	b.Helper()
	watching, err := f.rdss.Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { watching.Stop() }()
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- do() }()
	at := map[string]float64{}
	deadline := time.After(world.Patience)
	for over := false; len(at) < f.size || !over; {
		select {
		case err := <-done:
			if over = true; err != nil {
				b.Fatal(err)
			}
		case e, open := <-watching.ResultChan():
			if !open { // a busy API server ends watches; the next one begins with how all are by now
				if watching, err = f.rdss.Watch(b.Context(), metav1.ListOptions{}); err != nil {
					b.Fatal(err)
				}
				continue
			}
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
	return lastAndMiddle(slices.Collect(maps.Values(at)))
}

func lastAndMiddle(at []float64) (last, middle float64) {
	slices.Sort(at)
	return at[len(at)-1], at[len(at)/2]
}

// bareLoop makes the writes of a storm, and returns when the Rds were patched, as arrivals does. It takes the time of the answers: a
// watch of this very process is late while it writes.
func (f *benchFleet) bareLoop(b *testing.B) (last, middle float64) {
	b.Helper()
	at := make([]float64, f.size)
	began := time.Now()
	err := each(fleetWorkers, f.size, func(i int) error {
		return f.bareWrites(b.Context(), &f.all[i], func() { at[i] = time.Since(began).Seconds() })
	})
	if err != nil {
		b.Fatal(err)
	}
	return lastAndMiddle(at)
}

// bareWrites are those of the service for one alarm, without any thought: the signal, the intent, the Rds and the outcome. It calls
// patched once the Rds is.
func (f *benchFleet) bareWrites(ctx context.Context, a *v1alpha1.RdsAutopilot, patched func()) error {
	signal := map[string]any{
		"metric": "storage", "alarmID": a.Status.Alarms.Rules[0].AlarmID, "state": "alarm", "valuePercent": "93", "datapointTime": stormIntentDay,
		"alarmTime": stormIntentDay, "messageID": a.Status.Decisions[0].MessageID, "receivedTime": stormIntentDay,
	}
	intent := map[string]any{
		"kind": "Volume", "metrics": []string{"storage"}, "from": strconv.Itoa(stormSizeGB), "to": strconv.Itoa(stormWantsGB),
		"evidenceTime": stormIntentDay, "valuePercent": "93.0", "decisionTime": stormIntentDay, "generation": 1,
	}
	write := func(field string, value any) error {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{field: value}})
		if err != nil {
			return err
		}
		_, err = f.raps.Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status")
		return err
	}
	if err := write("intake", map[string]any{"signals": []any{signal}}); err != nil {
		return err
	}
	if err := write("pending", intent); err != nil {
		return err
	}
	patch := fmt.Sprintf(`[{"op":"test","path":"/status/id","value":%q},{"op":"test","path":"/spec/volumesize","value":%d},{"op":"replace","path":"/spec/volumesize","value":%d}]`,
		a.Status.Instance.ID, stormSizeGB, stormWantsGB)
	if _, err := f.rdss.Patch(ctx, a.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	patched()
	return write("decisions", a.Status.Decisions[1:])
}

// shortenHistory leaves little of each past: a write costs the API server as much as the object is large.
func (f *benchFleet) shortenHistory(b *testing.B) {
	b.Helper()
	for i := range f.all {
		s := &f.all[i].Status
		s.Changes, s.FormerVolumes, s.Decisions = s.Changes[:fleetHistory], nil, s.Decisions[:fleetHistory]
	}
	f.reset(b)
}

// reset puts everything back to how it was before a storm.
func (f *benchFleet) reset(b *testing.B) {
	b.Helper()
	ctx := b.Context()
	err := each(fleetWriters, f.size, func(i int) error {
		a := &f.all[i]
		if err := f.Cloud.SetWorkload(a.Status.Instance.ID, simcloud.Workload{UsedGB: stormQuietGB}); err != nil {
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
		_, err = f.rdss.Patch(ctx, a.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"volumesize":%d}}`, stormSizeGB), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	f.settled(b, simcloud.StateOK)
}

// alarm fills all volumes, waits until Cloud Eye reports all alarms, and returns a message for each.
func (f *benchFleet) alarm(b *testing.B) [][]byte {
	b.Helper()
	for i := range f.all {
		if err := f.Cloud.SetWorkload(f.all[i].Status.Instance.ID, simcloud.Workload{UsedGB: stormUsedGB}); err != nil {
			b.Fatal(err)
		}
	}
	f.settled(b, simcloud.StateAlarm)
	messages := make([][]byte, f.size)
	err := each(fleetWriters, f.size, func(i int) (err error) {
		a := &f.all[i].Status
		messages[i], err = f.Cloud.SignedAlarm(fmt.Sprintf("%032x", time.Now().UnixNano()), a.Alarms.TopicURN, a.Alarms.Rules[0].AlarmID, stormUsedGB)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return messages
}

// settled waits until all storage rules are in a state, and the newest datapoints say the same.
func (f *benchFleet) settled(b *testing.B, state simcloud.RuleState) {
	b.Helper()
	time.Sleep(f.Span(2 * time.Minute))
	err := world.Eventually(b.Context(), "the storage rules are in "+string(state), func(context.Context) (bool, error) {
		return !slices.ContainsFunc(f.Cloud.Rules(), func(r simcloud.Rule) bool { return r.Metric.MetricName == "rds039_disk_util" && r.State != state }), nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// post sends the messages at once.
func post(url string, messages [][]byte) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: fleetWriters}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	return each(fleetWriters, len(messages), func(i int) error {
		for {
			if status, err := postOne(client, url, messages[i]); err != nil || status == http.StatusOK {
				return err
			}
			time.Sleep(time.Second) // SMN sends again
		}
	})
}
