// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	ordersSmall, ordersLarge = "rds.pg.n1.large.4.ha", "rds.pg.n1.xlarge.4.ha"
	ordersResized            = 9 * 24 * time.Hour // before noon
	ordersGrown              = 2 * time.Hour      // before noon
)

// addOrders adds a database with a history: a new flavor, a growth, a cause that growing does not fix, and a forecast.
func (f *fleet) addOrders() {
	f.add("shop", "orders", ordersLarge, 120, 500, 82.5, func(a *v1alpha1.RdsAutopilot) {
		growth := changed(v1alpha1.KindVolume, ordersGrown, "110", "120")
		a.Status.Changes = []v1alpha1.Change{growth, changed(v1alpha1.KindFlavor, ordersResized, ordersSmall, ordersLarge)}
		a.Status.Decisions = []v1alpha1.DecisionRecord{
			decided(v1alpha1.MetricStorage, ordersGrown+3*time.Minute, autopilot.ActionNone, autopilot.ReasonChangePending, "", "",
				"Storage 110 → 120 GB is in progress. Next check at "+autopilot.TimeText(noon().Add(-ordersGrown))),
			decided(v1alpha1.MetricStorage, ordersGrown+4*time.Minute, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", "120",
				"Storage 110 → 120 GB: 90.1 % used, alarm at 90 %"),
			decided(v1alpha1.MetricCPU, ordersResized+4*time.Minute, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, ordersSmall, ordersLarge,
				fmt.Sprintf("Flavor %s (2 vCPUs, 8 GB) → %s (4 vCPUs, 16 GB): 91.2 %% CPU used, alarm at 90 %%", ordersSmall, ordersLarge)),
		}
		a.Spec.Flavor.MaxChangesPerDay = 1
		found := metav1.NewTime(noon().Add(-ordersGrown))
		full := noon().AddDate(0, 5, 0)
		a.Status.Insight = &v1alpha1.Insight{
			LookTime: found,
			Cause: &v1alpha1.Cause{Name: v1alpha1.CauseReplicationSlot, Time: found,
				Message: "41 GB of it are WAL. A logical replication slot is inactive (lag 40 GB): growing does not fix this"},
			Cap: &v1alpha1.CapForecast{MaxGB: 500, Time: found, ReadOnlyTime: new(metav1.NewTime(full)),
				Message: "A volume of 500 GB (spec.storage.maxGB) would be read-only at " + full.Format(time.RFC3339) + ", by the growth over 14 days"},
		}
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
	for at := since.Truncate(period).Add(period); at.Before(noon()); at = at.Add(period) {
		point := func(v float64) autopilot.Point { return autopilot.Point{Time: at, Value: v} }
		before := noon().Sub(at)
		size, load := 120., 45.
		if before > ordersGrown {
			size = 110
		}
		if before > ordersResized {
			load = 80
		}
		past.SizeGB, past.UsedGB = append(past.SizeGB, point(size)), append(past.UsedGB, point(99-2.3*before.Hours()/24))
		past.Percent[v1alpha1.MetricCPU] = append(past.Percent[v1alpha1.MetricCPU], point(load+12*math.Sin(before.Hours())))
		past.Percent[v1alpha1.MetricMemory] = append(past.Percent[v1alpha1.MetricMemory], point(68))
	}
	return past
}
