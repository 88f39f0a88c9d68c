// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// verdictOf returns the verdict of a walk that reads the facts of the case as it needs them.
func verdictOf(c autopilot.Case) autopilot.Verdict {
	_, v := walked(c)
	return v
}

// walked returns the case with the facts that a walk has read, and the verdict of the walk.
func walked(c autopilot.Case) (autopilot.Case, autopilot.Verdict) {
	c, read := cases.Unread(c)
	v := Walk(context.Background(), &c, read)
	return c, v
}

// all returns the alteration that applies several.
func all(alterations ...func(*autopilot.Case)) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		for _, alter := range alterations {
			alter(c)
		}
	}
}

// altered returns the case with one alarm after an alteration.
func altered(alter func(*autopilot.Case), a autopilot.Alarm) autopilot.Case {
	return row{alter: alter, alarms: one(a)}.build()
}

func busyCPU() autopilot.Alarm { return cases.UsageAt(v1alpha1.MetricCPU, 95) }

// cleared returns an alarm whose signal is stored and that has ended since.
func cleared(a autopilot.Alarm) autopilot.Alarm {
	return cases.Signalled(ended(a), v1alpha1.StateAlarm, 3*time.Minute, "95")
}

// ofUnknownMetric returns the alarm of a metric that only a newer version knows.
func ofUnknownMetric(a autopilot.Alarm) autopilot.Alarm {
	a.Metric = "iops"
	return a
}

func unchanged(*autopilot.Case) {}

func sweep(c *autopilot.Case) { c.IsSweep = true }

func newSpec(c *autopilot.Case) { c.Generation++ }

func metricOff(c *autopilot.Case) { c.Spec.Flavor.CPU.Enabled = new(false) }

func claimed(c *autopilot.Case) {
	c.Claim = v1alpha1.Claim{By: "shop/orders", Rule: "autopilot_shop_orders_*"}
}

func unclaimed(c *autopilot.Case) { c.Claim = v1alpha1.Claim{} }

// unmeasured returns the alarm as it is if no source has a measurement.
func unmeasured(a autopilot.Alarm) autopilot.Alarm {
	a.Evidence = autopilot.Evidence{Missing: "used space: no value; newest message: no value"}
	return a
}

func zones(of ...string) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Instance.Zones = of }
}

// forMemoryToo returns the alteration that the changes were for memory at these percentages as well.
func forMemoryToo(percent ...string) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		for i := range c.Status.Changes {
			ch := &c.Status.Changes[i]
			ch.Metrics, ch.MorePercents = append(ch.Metrics, v1alpha1.MetricMemory), percent
		}
	}
}

func otherFlavor(c *autopilot.Case) { c.Wanted.Flavor = "rds.mysql.n1.large.4" }

// failing returns the alteration that a fact cannot be read.
func failing(f autopilot.Fact) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		if c.Facts == nil {
			c.Facts = make(map[autopilot.Fact]error)
		}
		c.Facts[f] = errors.New("no answer")
	}
}

// times returns the alteration that the newest change was reverted n times.
func times(n int) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		for range n - 1 {
			c.Status.Changes = append(c.Status.Changes, c.Status.Changes[0])
		}
	}
}

func noBaseline(c *autopilot.Case) { c.Status.Baseline = nil }

func noPlace(c *autopilot.Case) { c.HasPlace = false }

// period1h is the alteration that Cloud Eye averages CPU over an hour.
func period1h(c *autopilot.Case) { c.Spec.Flavor.Alarm.PeriodSeconds = 3600 }

// slowRule is the alteration that the rule of storage needs 25 minutes.
func slowRule(c *autopilot.Case) {
	c.Spec.Storage.Alarm = v1alpha1.StorageAlarm{PeriodSeconds: 300, Count: 5}
}

// lost is the alteration that the newest change was lost.
func lost(c *autopilot.Case) { c.Status.Changes[0].State = v1alpha1.StateLost }

// replacedFlavor returns the alteration that a check found that long ago that another writer had replaced our flavor.
func replacedFlavor(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		c.Status.Changes[0].State, c.Status.Changes[0].EndTime = v1alpha1.StateReplaced, cases.Ago(age)
	}
}

// byOther is the alteration that another writer made the newest change.
func byOther(c *autopilot.Case) {
	ch := &c.Status.Changes[0]
	ch.By, ch.RequestTime = v1alpha1.ByOther, nil
}

// notOffered is the alteration that the cloud has no resize list for the engine.
func notOffered(c *autopilot.Case) { c.NotOffered = "DBS.200040" }

// otherFamily is the alteration that all larger flavors belong to another family.
func otherFamily(c *autopilot.Case) {
	for i := 3; i < len(c.Catalogue); i++ {
		c.Catalogue[i].Code = strings.Replace(c.Catalogue[i].Code, ".n1.", ".c2.", 1)
	}
}

// oldFlavor is the alteration that the cloud no longer sells the flavor of the instance, and that its size is not known.
func oldFlavor(c *autopilot.Case) {
	flavored("rds.mysql.former.9xlarge")(c)
	c.Instance.VCPUs, c.Instance.MemoryGB = 0, 0
}

func later(d time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Now = c.Now.Add(d) }
}

// sized returns the alteration that the Rds and the cloud have a volume of that many GB.
func sized(gb int) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Instance.VolumeGB, c.Wanted.VolumeGB = gb, gb }
}

// flavored returns the alteration that the Rds and the cloud have that flavor.
func flavored(code string) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Instance.Flavor, c.Wanted.Flavor = code, code }
}

// wantedGB returns the alteration that the Rds requests a volume of that many GB.
func wantedGB(gb int) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Wanted.VolumeGB = gb }
}

func flavorCap(vcpus int32) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Spec.Flavor.MaxVCPUs = &vcpus }
}

func memoryCap(gb int32) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Spec.Flavor.MaxMemoryGB = &gb }
}

// baseline returns the alteration of the size at first arming.
func baseline(b v1alpha1.Baseline) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Status.Baseline = &b }
}

// daily returns the alteration that n changes of flavor are allowed in 24 hours.
func daily(n int32) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Spec.Flavor.MaxChangesPerDay = n }
}

func off(r autopilot.Reason, message string) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Off = autopilot.Off{Reason: r, Message: message} }
}

// grown returns the alteration that our growth from 90 to 100 GB was completed that long ago.
func grown(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		c.Status.Changes = []v1alpha1.Change{cases.GrownVolume("90", "100", age)}
	}
}

// overdue returns the alteration that the used space has been over the threshold for that long.
func overdue(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		c.Status.OverThresholdSince = autopilot.Seconds(c.Now.Add(-age))
	}
}

// changedFlavor returns the alteration that a change of flavor was completed that long ago.
func changedFlavor(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Status.Changes = append(c.Status.Changes, cases.CompletedFlavor(age)) }
}

// onlyRefused is the alteration that our newest change was refused until no alarm needed it.
func onlyRefused(c *autopilot.Case) { c.Status.Changes[0].State = v1alpha1.StateWithdrawn }

// completed returns the alteration that the newest change was completed that long ago.
func completed(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Status.Changes[0].EndTime = cases.Ago(age) }
}

// unfulfilled returns the alteration that the cloud has not made another writer's change for 15 minutes.
func unfulfilled(kind v1alpha1.ChangeKind, to string) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		if kind == volume {
			c.Wanted.VolumeGB = autopilot.Gigabytes(to)
		} else {
			c.Wanted.Flavor = to
		}
		since := autopilot.Micro(c.Now.Add(-15 * time.Minute))
		c.Status.Changes = append(c.Status.Changes, v1alpha1.Change{Kind: kind, By: v1alpha1.ByOther, To: to, State: v1alpha1.StateRequested, RequestTime: since})
	}
}

// offered returns the alteration of the instance's own resize list.
func offered(codes ...string) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Offered, c.IsOffered = codes, true }
}
