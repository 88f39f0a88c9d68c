// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

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
