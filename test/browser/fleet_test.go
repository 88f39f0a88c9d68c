// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
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

// The plots, sizes, alarms and messages of shop/orders are computed from its used space and its load, so that they
// agree. The README has a picture of it.

const (
	ordersFrom, ordersTo = "rds.pg.n1.large.4.ha", "rds.pg.n1.xlarge.4.ha"
	ordersResized        = 9 * 24 * time.Hour // before noon
)

// daily returns 1 at noon and -1 at midnight.
func daily(at time.Time) float64 { return math.Sin(float64(at.Unix())/86400*2*math.Pi - math.Pi/2) }

func ordersUsedGB(at time.Time) float64 { return 99 - 2.3*noon().Sub(at).Hours()/24 + .3*daily(at) }

func ordersCPU(at time.Time) float64 {
	used := 45 + 12*daily(at) + 3*math.Sin(float64(at.Unix())/777)
	if noon().Sub(at) > ordersResized {
		return min(100, 1.6*used) // with half as many vCPUs
	}
	return used
}

// growth is a growth of a volume: how long before noon its alarm came, the sizes, and the used part in percent.
type growth struct {
	age          time.Duration
	fromGB, toGB int
	percent      float64
}

// ordersGrowths returns the growths of orders, the newest first. At these times, its used space reaches the threshold.
func ordersGrowths() []growth {
	return []growth{{2935 * time.Minute, 110, 120, 86.0}, {8865 * time.Minute, 100, 110, 85.0}}
}

// measured returns what Cloud Eye has measured of orders. Of young, it has only the last hour, with a growth in it.
func measured(name string, period time.Duration, since time.Time) (autopilot.Past, error) {
	past := autopilot.Past{Percent: map[v1alpha1.Metric][]autopilot.Point{}}
	growths := ordersGrowths()
	if name == "young" {
		since, growths = noon().Add(-70*time.Minute), []growth{{age: 18 * time.Minute, fromGB: 110, toGB: 120}}
	}
	for at := since.Truncate(period).Add(period); at.Before(noon()); at = at.Add(period) {
		size := growths[len(growths)-1].fromGB
		for _, g := range slices.Backward(growths) {
			if !at.Before(noon().Add(6*time.Minute - g.age)) {
				size = g.toGB
			}
		}
		point := func(v float64) autopilot.Point { return autopilot.Point{Time: at, Value: v} }
		past.SizeGB, past.UsedGB = append(past.SizeGB, point(float64(size))), append(past.UsedGB, point(ordersUsedGB(at)))
		past.Percent[v1alpha1.MetricCPU] = append(past.Percent[v1alpha1.MetricCPU], point(ordersCPU(at)))
		past.Percent[v1alpha1.MetricMemory] = append(past.Percent[v1alpha1.MetricMemory], point(68+2*daily(at)))
	}
	return past, nil
}

// addOrders adds a database with a history: a new flavor and growths.
func (f *fleet) addOrders() {
	var changes, decisions []object
	for _, g := range ordersGrowths() {
		from, to := fmt.Sprint(g.fromGB), fmt.Sprint(g.toGB)
		changes = append(changes, change("Volume", from, to, "storage", fmt.Sprintf("%.1f", g.percent), g.age-6*time.Minute))
		decisions = append(decisions, decision("storage", "GrowVolume", "AlarmInForce",
			fmt.Sprintf("Storage %s → %s GB: %.1f %% used, alarm at %d %%", from, to, g.percent, autopilot.Threshold(g.fromGB, 90)),
			g.age-2*time.Minute))
	}
	changes = append(changes, change("Flavor", ordersFrom, ordersTo, "cpu", "91.2", ordersResized))
	decisions = append(decisions, decision("cpu", "ChangeFlavor", "AlarmInForce", fmt.Sprintf("Flavor %s (2 vCPUs, 8 GB) → %s "+
		"(4 vCPUs, 16 GB): 91.2 %% CPU used, alarm at 90 %%", ordersFrom, ordersTo), ordersResized+4*time.Minute))
	f.add("shop", "orders", ordersTo, 120, 500, 100*ordersUsedGB(noon().Add(-11*time.Minute))/120,
		object{"changes": changes, "decisions": decisions})
}

// exampleFleet returns a fleet in which the states occur, with n databases.
func exampleFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{t: t, past: measured}
	f.addOrders()
	f.add("shop", "young", "rds.pg.n1.large.4", 120, 500, 82.6, object{
		"changes": []object{change("Volume", "110", "120", "storage", "90.1", 12*time.Minute)},
	})
	f.add("tenant-a", "queue", "rds.pg.n1.large.4", 90, 500, 88.5, object{}) // over its threshold
	f.add("tenant-b", "copy", "rds.pg.n1.large.4", 120, 500, 50, object{
		"conditions": []object{condition("Armed", "False", "InstanceClaimed", "shop/orders manages this instance: its alarm rules "+
			"autopilot_shop_orders_0a1b2c3d_* watch it. Turn one of the two off, or delete the rules if that cluster is gone", time.Hour)},
	})
	f.add("shop", "carts", "rds.pg.n1.large.4", 60, 500, 84, object{
		"alarms":  alarmOf("storage", 83, 4*time.Minute),
		"changes": []object{change("Volume", "60", "70", "storage", "84.0", 0)},
		"decisions": []object{decision("storage", "None", "ChangePending",
			"Storage 60 → 70 GB is in progress. Next check in 30 seconds", 3*time.Minute)},
	})
	f.add("billing", "invoices", "rds.pg.n1.2xlarge.4.ha", 480, 800, 71, object{
		"alarms": alarmOf("cpu", 90, 4*time.Minute),
		"decisions": []object{decision("cpu", "None", "Cooldown", "The flavor changed at 11:25 UTC, and the cooldown is 1 hour. "+
			"Next check at 12:25 UTC", 4*time.Minute)},
		"changes": []object{change("Flavor", "rds.pg.n1.xlarge.4.ha", "rds.pg.n1.2xlarge.4.ha", "cpu", "93.5", 35*time.Minute)},
	})
	armed := condition("Armed", "True", "AlarmsInPlace", "3 alarm rules exist", 72*time.Hour)
	f.add("billing", "ledger", "rds.pg.n1.xlarge.4", 500, 500, 91.5, object{
		"conditions": []object{armed, condition("Limited", "True", "CapReached",
			"Storage is at its limit: 500 GB (spec.storage.maxGB). Raise maxGB or free space", time.Hour)},
		"changes": []object{change("Volume", "490", "500", "storage", "90.2", 26*time.Hour),
			change("Volume", "480", "490", "storage", "90.4", 28*time.Hour)},
	})
	f.add("search", "index", "rds.mysql.n1.large.4", 200, 1000, 41, object{
		"conditions": []object{condition("Armed", "False", "SubscriptionPending", "The topic's subscription is not confirmed "+
			"yet. The cloud must reach the public URL, and the service must reach the confirmation link", 18*time.Minute)},
	})
	f.add("search", "logs", "rds.mysql.n1.large.4", 80, 80, 97.4, object{
		"conditions": []object{armed}, "readOnly": object{"sinceTime": before(25 * time.Minute)},
	})
	names := []string{"accounts", "audit", "catalogue", "mail", "media", "payments", "reviews", "sessions"}
	for i := len(f.all); i < n; i++ {
		status := object{}
		if i%7 == 0 {
			size := 50 + 10*(i%40)
			age := time.Duration(i) * 37 * time.Minute
			status["changes"] = []object{change("Volume", fmt.Sprint(size-10), fmt.Sprint(size), "storage", "88.0", age)}
		}
		f.add([]string{"core", "shop", "billing", "search", "tenant-a", "tenant-b"}[i%6],
			fmt.Sprintf("%s-%02d", names[i%8], i/8), []string{"rds.mysql.n1.large.2", "rds.pg.n1.large.4.ha"}[i%2],
			50+10*(i%40), 1000, float64(18+i*17%55), status)
	}
	return f
}
