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
	stormGrownGB   = 110
	stormQuietGB   = 10
	stormIntentDay = "2026-01-01T00:00:00.000000Z"
	bareWorkers    = 64 // the service decides for as many databases at a time
)

// storms makes all databases alarm at once. Before each storm, a bare loop makes the same writes.
func (f *fleet) storms(b *testing.B) {
	found := figures{}
	for b.Loop() {
		for i := range benchPairs {
			progress("storm %d of %d", i+1, benchPairs)
			bareLast, bareMedian := f.bareLoop(b)
			f.reset(b)
			p := f.serve(b)
			messages := f.alarm(b)
			resetPeak(b, p.PID)
			f.Cloud.ResetRequests()
			before := cpuSeconds(b, p.PID)
			last, median := f.arrivals(b, func() error { return post(p.WebhookURL+"/smn", messages) })
			cpu, peak := cpuSeconds(b, p.PID)-before, peakMiB(b, p.PID)
			calls := float64(max(f.Cloud.Count("ces", ""), f.Cloud.Count("rds", ""), f.Cloud.Count("smn", ""))) // each has a rate of its own
			f.stop(b, p)
			f.reset(b)
			found.add("last-s", last)
			found.add("p50-s", median)
			found.add("bare-last-s", bareLast)
			found.add("bare-p50-s", bareMedian)
			found.add("last×bare", last/bareLast)
			found.add("p50×bare", median/bareMedian)
			found.add("cpu-s", cpu)
			found.add("peak-MiB", peak)
			found.add("calls", calls)
			progress("last %.1f s (bare loop %.1f), p50 %.1f s (%.1f), %.1f s of CPU, peak %.0f MiB, %v calls", last, bareLast, median, bareMedian, cpu, peak, calls)
		}
	}
	found.report(b)
}

// arrivals calls do, and returns the seconds until all of the fleet request a larger volume, and until half of them do.
func (f *fleet) arrivals(b *testing.B, do func() error) (last, median float64) {
	b.Helper()
	watching, err := f.rdss.Watch(b.Context(), metav1.ListOptions{})
	must(b, err)
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
			if !open { // a busy API server ends watches. The next one begins with the present state of all
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
			if _, known := at[rds.GetName()]; !known && size == stormGrownGB {
				at[rds.GetName()] = time.Since(began).Seconds()
			}
		case <-deadline:
			b.Fatalf("%d of %d request a larger volume", len(at), f.size)
		}
	}
	return lastAndMedian(slices.Collect(maps.Values(at)))
}

func lastAndMedian(at []float64) (last, median float64) {
	slices.Sort(at)
	return at[len(at)-1], at[len(at)/2]
}

// bareLoop makes the writes of a storm, and returns the seconds until all Rds and half of them were patched. It takes the times of
// the answers, because a watch of this process is late while the process writes.
func (f *fleet) bareLoop(b *testing.B) (last, median float64) {
	b.Helper()
	at := make([]float64, f.size)
	began := time.Now()
	err := each(bareWorkers, f.size, func(i int) error {
		return f.bareWrites(b.Context(), &f.all[i], func() { at[i] = time.Since(began).Seconds() })
	})
	must(b, err)
	return lastAndMedian(at)
}

// bareWrites makes the writes of the service for one alarm, without its decision: the signal, then the change with its record, and
// the Rds. It calls patched once the Rds is patched.
func (f *fleet) bareWrites(ctx context.Context, a *v1alpha1.RdsAutopilot, patched func()) error {
	size, grown := strconv.Itoa(stormSizeGB), strconv.Itoa(stormGrownGB)
	signal := map[string]any{
		"metric": "storage", "alarmID": a.Status.Alarms.Rules[0].AlarmID, "state": "alarm", "valuePercent": "93", "datapointTime": stormIntentDay,
		"alarmTime": stormIntentDay, "messageID": "00000000000000000000000000000001", "receivedTime": stormIntentDay,
	}
	change := map[string]any{
		"kind": "Volume", "by": "Autopilot", "metrics": []string{"storage"}, "from": size, "to": grown, "evidenceTime": stormIntentDay,
		"valuePercent": "93.0", "decisionTime": stormIntentDay,
	}
	decision := map[string]any{
		"time": "2026-01-01T00:00:00Z", "lastTime": "2026-01-01T00:00:00Z", "count": 1, "metric": "storage", "action": "GrowVolume",
		"reason": "AlarmInForce", "from": size, "to": grown, "valuePercent": "93.0", "message": "Storage 100 → 110 GB: 93.0 % used, alarm at 85 %",
	}
	for _, status := range []map[string]any{
		{"intake": map[string]any{"signals": []any{signal}}},
		{"changes": []any{change}, "decisions": []any{decision}},
	} {
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		strict := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
		if _, err = f.raps.Patch(ctx, a.Name, types.MergePatchType, patch, strict, "status"); err != nil {
			return err
		}
	}
	patch := fmt.Sprintf(`[{"op":"test","path":"/status/id","value":%q},{"op":"test","path":"/spec/volumesize","value":%d},{"op":"replace","path":"/spec/volumesize","value":%d}]`,
		a.Status.Instance.ID, stormSizeGB, stormGrownGB)
	_, err := f.rdss.Patch(ctx, a.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	patched()
	return err
}

// reset restores the state before a storm.
func (f *fleet) reset(b *testing.B) {
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
	must(b, err)
	f.waitForRules(b, simcloud.StateOK)
}

// alarm fills all volumes, waits until Cloud Eye reports all alarms, and returns a message for each.
func (f *fleet) alarm(b *testing.B) [][]byte {
	b.Helper()
	for i := range f.all {
		must(b, f.Cloud.SetWorkload(f.all[i].Status.Instance.ID, simcloud.Workload{UsedGB: stormUsedGB}))
	}
	f.waitForRules(b, simcloud.StateAlarm)
	messages := make([][]byte, f.size)
	err := each(fleetWriters, f.size, func(i int) (err error) {
		a := &f.all[i].Status
		messages[i], err = f.Cloud.SignedAlarm(fmt.Sprintf("%032x", time.Now().UnixNano()), f.TopicURN(), a.Alarms.Rules[0].AlarmID, stormUsedGB)
		return err
	})
	must(b, err)
	return messages
}

// waitForRules waits until all storage rules are in a state, and the newest datapoints agree with it.
func (f *fleet) waitForRules(b *testing.B, state simcloud.RuleState) {
	b.Helper()
	time.Sleep(f.Span(2 * time.Minute))
	err := world.Eventually(b.Context(), "the storage rules are in "+string(state), func(context.Context) (bool, error) {
		return !slices.ContainsFunc(f.Cloud.Rules(), func(r simcloud.Rule) bool { return r.Metric.MetricName == "rds039_disk_util" && r.State != state }), nil
	})
	must(b, err)
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
