// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Alteration modifies a case. It may modify what the instance, the status and the catalogue refer to, because Quiet
// returns its own for each case.
type Alteration = func(*autopilot.Case)

// Both returns the alteration that applies two.
func Both(f, g Alteration) Alteration { return func(c *autopilot.Case) { f(c); g(c) } }

// PendingVolume returns the alteration that the Rds requests 110 GB, as we decided that long ago.
func PendingVolume(age time.Duration) Alteration {
	return func(c *autopilot.Case) {
		c.Wanted.VolumeGB = 110
		AddPending(&c.Status, PendingTo(v1alpha1.KindVolume, "100", "110", age))
	}
}

// PendingFlavor returns the alteration that the Rds requests the flavor with 16 vCPUs, as we decided that long ago.
func PendingFlavor(age time.Duration) Alteration {
	return func(c *autopilot.Case) {
		c.Wanted.Flavor = "rds.mysql.n1.4xlarge.4"
		AddPending(&c.Status, PendingTo(v1alpha1.KindFlavor, "rds.mysql.n1.2xlarge.4", c.Wanted.Flavor, age))
	}
}

// CloudRefuses returns the alteration that the cloud has just refused a pending change for the first time.
func CloudRefuses(pending Alteration, r autopilot.Reason) Alteration {
	return func(c *autopilot.Case) {
		pending(c)
		WithoutRds(c)
		ch := &c.Status.Changes[0]
		ch.State = v1alpha1.StateRefused
		ch.Refusal = &v1alpha1.Refusal{
			Count: 1, Time: Ago(0), NextTime: new(Ago(-time.Minute)), Reason: string(r), Message: "in its words",
		}
	}
}

// WithoutRds is the alteration that the instance has no Rds, so that the cloud is asked.
func WithoutRds(c *autopilot.Case) {
	c.Spec.Apply, c.NoRds = v1alpha1.ApplyCloud, true
	c.Wanted = autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
}

// RunningFor returns the alteration that a job of the cloud has grown the volume for that long.
func RunningFor(d time.Duration) Alteration {
	return func(c *autopilot.Case) {
		PendingVolume(d)(c)
		WithoutRds(c)
		c.Instance.Status = "MODIFYING"
		ch := &c.Status.Changes[0]
		ch.State, ch.JobID, ch.StartTime = v1alpha1.StateStarted, "j1", ch.RequestTime
	}
}

// InStatus returns the alteration that the instance has that status.
func InStatus(status string) Alteration {
	return func(c *autopilot.Case) { c.Instance.Status = status }
}

// Sized returns the alteration that the cloud has a volume of that many GB.
func Sized(gb int) Alteration {
	return func(c *autopilot.Case) { c.Instance.VolumeGB = gb }
}

// Flavored returns the alteration that the cloud has that flavor.
func Flavored(code string) Alteration {
	return func(c *autopilot.Case) { c.Instance.Flavor = code }
}

// ActiveFor returns the alteration that the instance has been ACTIVE for that long.
func ActiveFor(d time.Duration) Alteration {
	return func(c *autopilot.Case) { c.Status.Instance.ActiveSince = new(metav1.NewTime(Noon().Add(-d))) }
}

// ReadOnly is the alteration that the cloud has kept the database read-only for an hour.
func ReadOnly(c *autopilot.Case) {
	c.Status.ReadOnly = &v1alpha1.ReadOnly{SinceTime: metav1.NewTime(Noon().Add(-time.Hour))}
}

// Recommend lets the service only recommend: it changes nothing.
func Recommend(c *autopilot.Case) { c.Mode = v1alpha1.ModeRecommend }

// Steps returns the alteration of the least step and the cap of storage in GB.
func Steps(stepGB, maxGB int32) Alteration {
	return func(c *autopilot.Case) { c.Spec.Storage.StepGB, c.Spec.Storage.MaxGB = stepGB, maxGB }
}

// Cooldown returns the alteration of the cooldown in seconds.
func Cooldown(seconds int32) Alteration {
	return func(c *autopilot.Case) { c.Spec.Flavor.CooldownSeconds = &seconds }
}

// InWindow returns the alteration that flavors may change on that day only, between these times in UTC.
func InWindow(day v1alpha1.Day, start, end string) Alteration {
	return func(c *autopilot.Case) {
		c.Spec.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: start, End: end, TimeZone: "UTC"}
	}
}

// Deferred returns the alteration that a change for these metrics waits since Wednesday, and that its window is open.
func Deferred(metrics ...v1alpha1.Metric) Alteration {
	return func(c *autopilot.Case) {
		InWindow("Fri", "11:00", "13:00")(c)
		c.Status.Deferred = &v1alpha1.Deferred{
			Metrics: metrics, ValuePercent: "95.0", MorePercents: slices.Repeat([]string{"92.0"}, max(len(metrics)-1, 0)),
			FirstTime: metav1.NewTime(Noon().Add(-48 * time.Hour)), LastTime: metav1.NewTime(Noon().Add(-47 * time.Hour)),
		}
	}
}

// SoldOut returns the alteration that all flavors are sold out in a zone.
func SoldOut(zone string) Alteration { return ZoneState(zone, flavors.ZoneSoldOut) }

// ZoneState returns the alteration that all flavors have that state in a zone.
func ZoneState(zone, state string) Alteration {
	return func(c *autopilot.Case) {
		for i := range c.Catalogue {
			c.Catalogue[i].Zones = map[string]string{
				"eu-de-01": flavors.ZoneNormal, "eu-de-02": flavors.ZoneNormal, "eu-de-03": flavors.ZoneNormal,
			}
			c.Catalogue[i].Zones[zone] = state
		}
	}
}

// WithReplica returns the alteration that an instance of that engine has a read replica of its own size.
func WithReplica(engine string) Alteration {
	return func(c *autopilot.Case) {
		c.Instance.Engine = engine
		c.Instance.Replicas = []autopilot.Replica{{Name: "reader", VCPUs: 8, MemoryGB: 32}}
		for i := range c.Catalogue {
			c.Catalogue[i].Engine = engine
		}
	}
}

// Changed returns the alteration that a change of flavor of ours for CPU at that percentage was decided and completed
// that long ago. It is older than the changes of the case.
func Changed(age time.Duration, percent string) Alteration {
	return func(c *autopilot.Case) {
		at := Ago(age)
		c.Status.Changes = append(c.Status.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4",
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, ValuePercent: percent, RequestTime: &at, EndTime: at,
			State: v1alpha1.StateCompleted,
		})
	}
}

// MadeSmaller returns the alteration that another writer made the flavor smaller that long ago. The flavor of the
// instance does not change.
func MadeSmaller(age time.Duration) Alteration {
	return func(c *autopilot.Case) {
		c.Status.Changes = append([]v1alpha1.Change{{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByOther, From: "rds.mysql.n1.2xlarge.4", To: "rds.mysql.n1.xlarge.4",
			EndTime: Ago(age), State: v1alpha1.StateCompleted,
		}}, c.Status.Changes...)
	}
}

// RolledBack returns the alteration that the cloud reverted our flavor that long ago although the Rds requests it. The
// flavor of the instance does not change.
func RolledBack(age time.Duration) Alteration {
	return func(c *autopilot.Case) {
		for i, ch := range c.Status.Changes {
			if ch.By == v1alpha1.ByAutopilot && ch.Kind == v1alpha1.KindFlavor {
				c.Status.Changes[i].State, c.Status.Changes[i].EndTime = v1alpha1.StateReverted, Ago(age)
				break
			}
		}
		MadeSmaller(age)(c)
	}
}

// Restored is the alteration that another writer requests the flavor from before Changed, and the instance has it.
func Restored(c *autopilot.Case) {
	c.Wanted.Flavor, c.Instance.Flavor, c.FlavorWriter = "rds.mysql.n1.xlarge.4", "rds.mysql.n1.xlarge.4", "a-gitops-tool"
	c.Instance.VCPUs, c.Instance.MemoryGB = 4, 16
}

// LostVolume is the alteration that another writer reverted our size half a minute ago.
func LostVolume(c *autopilot.Case) {
	c.SizeWriter = "a-gitops-tool"
	lost := GrownVolume("100", "110", 30*time.Second)
	lost.State = v1alpha1.StateReplaced
	c.Status.Changes = []v1alpha1.Change{lost}
}

// RefusedPatch is the alteration that the API server refused the patch of our size half a minute ago.
func RefusedPatch(c *autopilot.Case) {
	AddPending(&c.Status, PendingTo(v1alpha1.KindVolume, "100", "110", time.Minute))
	ch := &c.Status.Changes[0]
	ch.State = v1alpha1.StateRefused
	ch.Refusal = &v1alpha1.Refusal{Count: 1, Time: Ago(30 * time.Second), NextTime: new(Ago(-30 * time.Second)), Message: "not on Fridays"}
}
