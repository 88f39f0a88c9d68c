// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/page"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// fleet is the cache of the page.
type fleet struct {
	t   *testing.T
	mu  sync.Mutex
	all []*v1alpha1.RdsAutopilot
	// past returns what Cloud Eye has measured.
	past func(name string, period time.Duration, since time.Time) (autopilot.Past, error)
}

// object is an object of JSON: the page's script sees no types.
type object = map[string]any

// before returns a time as JSON has it.
func before(d time.Duration) string { return noon().Add(-d).Format("2006-01-02T15:04:05.000000Z07:00") }

// add adds an armed database with this flavor, size, cap and used space, and then the given fields of its status.
func (f *fleet) add(namespace, name, flavor string, gb, maxGB int, usedPercent float64, status object) {
	f.t.Helper()
	alarms := alarmOf("", 0, 0)
	alarms["rules"].([]object)[0]["thresholdPercent"] = autopilot.Threshold(gb, 90)
	all := object{
		"effectiveMode": "Auto",
		"instance": object{
			"id": "0c2b7f2e9d5f4a1c8e6b3a7d5c1f9e02in01", "status": "ACTIVE", "volumeGB": gb, "flavor": flavor,
			"vcpus": 4, "memoryGB": 16,
		},
		"conditions": []object{condition("Armed", "True", "AlarmsInPlace", "3 alarm rules exist", 72*time.Hour)},
		"alarms":     alarms,
		"intake": object{"signals": []object{{
			"metric": "storage", "alarmID": "al17storage", "state": "ok", "valuePercent": fmt.Sprintf("%.1f", usedPercent),
			"datapointTime": before(11 * time.Minute), "alarmTime": before(10 * time.Minute), "messageID": "4f9c1e2a7b8d",
			"receivedTime": before(10 * time.Minute),
		}}},
	}
	maps.Copy(all, status)
	f.addObject(object{
		"metadata": object{"namespace": namespace, "name": name},
		"spec": object{"mode": "Auto", "storage": object{"maxGB": maxGB, "stepGB": 10, "thresholdPercent": 90},
			"flavor": object{
				"cpu": object{"thresholdPercent": 90}, "memory": object{"thresholdPercent": 90}, "maxVCPUs": 16, "maxMemoryGB": 64,
				"cooldownSeconds": 3600, "maxChangesPerDay": 2,
				"window": object{"days": []string{"Sat", "Sun"}, "start": "01:00", "end": "05:00", "timeZone": "Europe/Berlin"},
			}},
		"status": all,
	})
}

func (f *fleet) addObject(o object) {
	f.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		f.t.Fatal(err)
	}
	a := &v1alpha1.RdsAutopilot{}
	if err := json.Unmarshal(text, a); err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, a)
}

func condition(kind, status, reason, message string, age time.Duration) object {
	return object{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": before(age)}
}

// change is a change of the autopilot that ended so long ago. If that is 0, it is pending.
func change(kind, from, to, metric, percent string, age time.Duration) object {
	c := object{
		"kind": kind, "by": "Autopilot", "from": from, "to": to, "metrics": []string{metric}, "valuePercent": percent,
		"requestTime": before(age + 4*time.Minute), "startTime": before(age + 3*time.Minute),
	}
	if age > 0 {
		c["endTime"], c["state"] = before(age), "Completed"
	}
	return c
}

func decision(metric, action, reason, message string, age time.Duration) object {
	return object{
		"time": before(age), "lastTime": before(age), "count": 1, "metric": metric, "action": action, "reason": reason,
		"message": message,
	}
}

// alarmOf returns the rules with one in force. With an empty metric, none is.
func alarmOf(metric string, threshold int, age time.Duration) object {
	rules := []object{}
	for _, m := range []string{"storage", "cpu", "memory"} {
		rule := object{"metric": m, "alarmID": "al17" + m, "thresholdPercent": 90, "state": "ok"}
		if m == metric {
			rule["thresholdPercent"], rule["state"], rule["stateTime"] = threshold, "alarm", before(age)
		}
		rules = append(rules, rule)
	}
	return object{"rules": rules}
}

func (f *fleet) databases() []*v1alpha1.RdsAutopilot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

func (f *fleet) HasSynced() bool { return true }
func (f *fleet) Reachable() bool { return true }

// EachAutopilot has no order, like the caches.
func (f *fleet) EachAutopilot(each func(*v1alpha1.RdsAutopilot)) {
	all := f.databases()
	for _, i := range rand.Perm(len(all)) {
		each(all[i])
	}
}

func (f *fleet) EachTarget(each func(*autopilot.Target)) {
	for _, a := range f.databases() {
		each(target(a))
	}
}

func (f *fleet) Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool) {
	for _, a := range f.databases() {
		if a.Namespace == namespace && a.Name == name {
			return a, true
		}
	}
	return nil, false
}

func (f *fleet) Target(namespace, name string) *autopilot.Target {
	if a, ok := f.Autopilot(namespace, name); ok {
		return target(a)
	}
	return nil
}

// target returns the Rds that requests what the instance has.
func target(a *v1alpha1.RdsAutopilot) *autopilot.Target {
	t := &autopilot.Target{Namespace: a.Namespace, Name: a.Name}
	if i := a.Status.Instance; i != nil {
		t.Wanted = autopilot.Wanted{VolumeGB: int(i.VolumeGB), Flavor: i.Flavor}
	}
	return t
}

// serve serves the page of a fleet. It returns the URL and the host.
func serve(t *testing.T, f *fleet) (address, host string) {
	t.Helper()
	server := httptest.NewServer(page.New(page.Options{
		Cache: f, Sweep: 5 * time.Minute, Recheck: 30 * time.Second, Version: "v0.1.0", Now: noon,
		Past: func(_ context.Context, a *v1alpha1.RdsAutopilot, period time.Duration,
			since time.Time) (autopilot.Past, error) {
			return f.past(a.Name, period, since)
		},
	}))
	t.Cleanup(server.Close)
	return server.URL, strings.TrimPrefix(server.URL, "http://")
}
