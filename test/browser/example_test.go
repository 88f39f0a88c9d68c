// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The plots, sizes, alarms and messages of the database orders are computed from its used space and its load, so that they agree.
// The README has a picture of it.

const (
	ordersFrom, ordersTo = "rds.pg.n1.large.4.ha", "rds.pg.n1.xlarge.4.ha"
	ordersResized        = 9 * 24 * time.Hour // before noon
	alarmAt              = 90                 // percent, for all metrics of orders
)

// daily returns 1 at noon and -1 at midnight.
func daily(at time.Time) float64 { return math.Sin(float64(at.Unix())/86400*2*math.Pi - math.Pi/2) }

func ordersUsedGB(at time.Time) float64 { return 99 - 2.3*noon().Sub(at).Hours()/24 + .3*daily(at) }

func ordersCPU(at time.Time) float64 {
	used := 45 + 12*daily(at) + math.Sin(float64(at.Unix())/777)
	if noon().Sub(at) > ordersResized {
		return 1.6 * used // with half as many vCPUs
	}
	return used
}

// growth is a growth of orders: the time of its alarm, and the sizes.
type growth struct {
	at           time.Time
	fromGB, toGB int
	percent      float64
}

// ordersGrowths returns the growths in the order of time.
func ordersGrowths() (all []growth) {
	size := 100
	for at := noon().Add(-14 * 24 * time.Hour); at.Before(noon()); at = at.Add(5 * time.Minute) {
		if percent := 100 * ordersUsedGB(at) / float64(size); percent >= float64(autopilot.Threshold(size, alarmAt)) {
			all = append(all, growth{at, size, size + 10, percent})
			size += 10
		}
	}
	return all
}

// addOrders adds a database with a history: a new flavor and growths.
func (f *fleet) addOrders() {
	growths := ordersGrowths()
	size := growths[len(growths)-1].toGB
	measured := noon().Add(-11 * time.Minute)
	f.add("shop", "orders", ordersTo, int32(size), 500, 100*ordersUsedGB(measured)/float64(size), func(a *v1alpha1.RdsAutopilot) {
		a.Status.Intake.Signals[0].ValuePercent = fmt.Sprintf("%.1f", 100*ordersUsedGB(measured)/float64(size))
		resized := noon().Add(-ordersResized)
		a.Status.Changes = []v1alpha1.Change{changed(v1alpha1.KindFlavor, ordersResized, ordersFrom, ordersTo)}
		a.Status.Decisions = []v1alpha1.DecisionRecord{decided(v1alpha1.MetricCPU, ordersResized+4*time.Minute, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, ordersFrom, ordersTo,
			fmt.Sprintf("Flavor %s (2 vCPUs, 8 GB) → %s (4 vCPUs, 16 GB): %.1f %% CPU used, alarm at %d %%", ordersFrom, ordersTo, ordersCPU(resized.Add(-5*time.Minute)), alarmAt))}
		for _, g := range growths {
			from, to, before := strconv.Itoa(g.fromGB), strconv.Itoa(g.toGB), noon().Sub(g.at)
			a.Status.Changes = append([]v1alpha1.Change{changed(v1alpha1.KindVolume, before-6*time.Minute, from, to)}, a.Status.Changes...)
			a.Status.Decisions = append([]v1alpha1.DecisionRecord{
				decided(v1alpha1.MetricStorage, before-3*time.Minute, autopilot.ActionNone, autopilot.ReasonChangePending, "", "", fmt.Sprintf("Storage %s → %s GB is in progress. Next check at %s", from, to, autopilot.TimeText(noon().Add(3*time.Minute-before+30*time.Second)))),
				decided(v1alpha1.MetricStorage, before-2*time.Minute, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, from, to,
					fmt.Sprintf("Storage %s → %s GB: %.1f %% used, alarm at %d %%", from, to, g.percent, autopilot.Threshold(g.fromGB, alarmAt))),
			}, a.Status.Decisions...)
		}
		a.Spec.Flavor.MaxChangesPerDay = 1
	})
}

// exampleFleet returns a fleet in which each state occurs.
func exampleFleet() *fleet {
	f := &fleet{}
	f.addOrders()
	f.add("shop", "carts", "rds.pg.n1.large.4", 60, 500, 84, inAlarm(0, decided(v1alpha1.MetricStorage, 3*time.Minute, autopilot.ActionNone, autopilot.ReasonChangePending, "", "", "Storage 60 → 70 GB is in progress. Next check at "+autopilot.TimeText(noon().Add(-150*time.Second)))), func(a *v1alpha1.RdsAutopilot) {
		a.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindVolume, From: "60", To: "70", DecisionTime: beforeNoon(3 * time.Minute), AskedTime: new(beforeNoon(3 * time.Minute)), ValuePercent: "84", EvidenceTime: beforeNoon(4 * time.Minute), Message: "Storage 60 → 70 GB: 84.0 % used, alarm at 83 %"}
	})
	f.add("billing", "invoices", "rds.pg.n1.2xlarge.4.ha", 480, 500, 88, inAlarm(1, decided(v1alpha1.MetricCPU, 4*time.Minute, autopilot.ActionNone, autopilot.ReasonCooldown, "", "", "The flavor changed at 2026-11-22T11:25:00Z, and the cooldown is 1 hour. Next check at 2026-11-22T12:25:00Z")), func(a *v1alpha1.RdsAutopilot) {
		a.Status.Changes = []v1alpha1.Change{changed(v1alpha1.KindFlavor, 35*time.Minute, "rds.pg.n1.xlarge.4.ha", "rds.pg.n1.2xlarge.4.ha")}
		a.Status.Decisions[0].ValuePercent = "97.2"
	})
	f.add("billing", "ledger", "rds.pg.n1.xlarge.4", 500, 500, 89.5, func(a *v1alpha1.RdsAutopilot) {
		record.SetCondition(&a.Status, v1alpha1.ConditionLimited, true, "CapReached", "Storage is at its limit: 500 GB (spec.storage.maxGB is 500). Raise maxGB or free space", 1, noon().Add(-time.Hour))
		a.Status.Changes = []v1alpha1.Change{changed(v1alpha1.KindVolume, 26*time.Hour, "490", "500")}
	})
	f.add("search", "index", "rds.mysql.n1.large.4", 200, 1000, 41, func(a *v1alpha1.RdsAutopilot) {
		record.SetCondition(&a.Status, v1alpha1.ConditionArmed, false, autopilot.SubscriptionPending, "The topic's subscription is not confirmed yet. The cloud must reach the public URL, and the service must reach the confirmation link", 1, noon().Add(-18*time.Minute))
	})
	for i, name := range []string{"accounts", "audit", "catalogue", "mail", "media", "payments", "reviews", "sessions"} {
		f.add([]string{"core", "shop"}[i%2], name, []string{"rds.mysql.n1.large.2", "rds.pg.n1.large.4.ha"}[i%2], int32(50+40*i), 1000, float64(35+5*i))
	}
	return f
}

// ordersMeasured returns what Cloud Eye has measured of orders.
func ordersMeasured(period time.Duration, since time.Time) autopilot.Past {
	past := autopilot.Past{Percent: map[v1alpha1.Metric][]autopilot.Point{}}
	growths := ordersGrowths()
	for at := since.Truncate(period).Add(period); at.Before(noon()); at = at.Add(period) {
		size := growths[0].fromGB
		for _, g := range growths {
			if !at.Before(g.at.Add(6 * time.Minute)) {
				size = g.toGB
			}
		}
		point := func(v float64) autopilot.Point { return autopilot.Point{Time: at, Value: v} }
		past.SizeGB, past.UsedGB = append(past.SizeGB, point(float64(size))), append(past.UsedGB, point(ordersUsedGB(at)))
		past.Percent[v1alpha1.MetricCPU] = append(past.Percent[v1alpha1.MetricCPU], point(ordersCPU(at)))
		past.Percent[v1alpha1.MetricMemory] = append(past.Percent[v1alpha1.MetricMemory], point(68+2*daily(at)))
	}
	return past
}
