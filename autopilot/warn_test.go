// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// grow is one look at a volume of that size: what the loop keeps, and what people are warned of.
func (c *Case) grow(gb int) (warned []string) {
	c.Instance = &Instance{ID: "id", Status: StatusActive, VolumeGB: gb, Flavor: "f"}
	status := FollowUp(*c).Status
	for _, w := range UpdateWarnings(*c, &status) {
		warned = append(warned, string(w.Reason)+": "+w.Message)
	}
	c.Status = *status.DeepCopy() // as after a restart
	return warned
}

func TestUpdateWarnings(t *testing.T) {
	const day = 24 * time.Hour
	type look struct {
		after time.Duration
		gb    int
		want  string // empty: no warning
	}
	near := "NearCap: Storage has 80 GB, 80 % of its limit of 100 GB (spec.storage.maxGB). Raise maxGB or free space before it stops growing"
	full := "CapReached: Storage is at its limit: 100 GB (spec.storage.maxGB is 100). Raise maxGB or free space"
	for _, tc := range []struct {
		name  string
		maxGB int32
		looks []look
	}{
		{"at 80 % and at the cap, each once", 100, []look{{0, 70, ""}, {day, 80, near}, {time.Minute, 80, ""}, {0, 90, ""}, {day, 90, ""}, {day, 100, full}, {time.Minute, 100, ""}, {9 * day, 100, ""}}},
		{"a cap at the present size from the beginning", 100, []look{{0, 100, full}, {day, 100, ""}}},
		{"a cap far away", 4000, []look{{0, 100, ""}, {day, 110, ""}}},
		{"doubled in small steps within 7 days, once", 4000, []look{
			{0, 40, ""}, {day, 50, ""}, {day, 60, ""}, {day, 70, ""}, {time.Hour, 80, "VolumeDoubled: Storage has doubled within 7 days, from 40 to 80 GB. Check what fills it"},
			{time.Minute, 80, ""}, {day, 90, ""},
		}},
		{"doubled in one day", 4000, []look{{0, 40, ""}, {time.Hour, 60, ""}, {time.Hour, 80, "VolumeDoubled: Storage has doubled within 7 days, from 40 to 80 GB. Check what fills it"}}},
		{"many steps in a day are one day", 4000, func() (looks []look) {
			for gb := 200; gb <= 330; gb += 10 {
				looks = append(looks, look{time.Minute, gb, ""})
			}
			return append(looks, look{day, 400, "VolumeDoubled: Storage has doubled within 7 days, from 200 to 400 GB. Check what fills it"})
		}()},
		{"doubled twice is told twice", 4000, []look{{0, 40, ""}, {time.Hour, 80, "VolumeDoubled: Storage has doubled within 7 days, from 40 to 80 GB. Check what fills it"}, {day, 150, ""}, {day, 160, "VolumeDoubled: Storage has doubled within 7 days, from 40 to 160 GB. Check what fills it"}}},
		{"doubled in 8 days is no news", 4000, []look{{0, 40, ""}, {0, 50, ""}, {8 * day, 80, ""}}},
		{"it can double again after a while", 4000, []look{{0, 40, ""}, {0, 80, "VolumeDoubled: Storage has doubled within 7 days, from 40 to 80 GB. Check what fills it"}, {8 * day, 80, ""}, {day, 160, "VolumeDoubled: Storage has doubled within 7 days, from 80 to 160 GB. Check what fills it"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Case{Now: noon(), Spec: policy()}
			c.Spec.Storage.MaxGB = tc.maxGB
			for i, l := range tc.looks {
				c.Now = c.Now.Add(l.after)
				if got := strings.Join(c.grow(l.gb), "\n"); got != l.want {
					t.Errorf("look %d, at %d GB: %q, want %q", i+1, l.gb, got, l.want)
				}
				if n := len(c.Status.FormerVolumes); n > formerKept {
					t.Errorf("%d sizes kept", n)
				}
			}
		})
	}
	t.Run("a raised cap is a new one", func(t *testing.T) {
		c := Case{Now: noon(), Spec: policy()}
		for i, limit := range []int32{100, 200, 200, 100} {
			c.Spec.Storage.MaxGB = limit
			if got, want := len(c.grow(100)), (limit-200)/-100; got != int(want) {
				t.Errorf("look %d, cap %d GB: %d warnings, want %d", i+1, limit, got, want)
			}
		}
	})
	t.Run("another instance has no past", func(t *testing.T) {
		c := Case{Now: noon(), Spec: policy()}
		c.grow(40)
		c.grow(80)
		c.Instance.ID = "another"
		c.Status = FollowUp(c).Status
		if len(c.Status.FormerVolumes)+len(c.Status.Warned) > 0 {
			t.Errorf("status %+v", c.Status)
		}
	})
}

func TestConditionLimited(t *testing.T) {
	c := quiet()
	c.Spec.Storage.StepGB, c.Spec.Storage.MaxGB = 50, 120
	limited := func(when string, want bool, says string) {
		t.Helper()
		v := Decide(c)
		c.Status = RecordIntent(c, v)
		setLimited(&c.Status, v, c.Generation, c.Now)
		got := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionLimited)
		if on := got.Status == "True"; on != want || !strings.Contains(got.Message, says) {
			t.Errorf("%s: %s (%s), want %t and %q", when, got.Status, got.Message, want, says)
		}
		if want && got.Reason != string(ReasonCapReached) {
			t.Errorf("%s: reason %s", when, got.Reason)
		}
	}
	limited("nothing is wished for", false, "Within limits")
	c.Alarms = []Alarm{storageAt(93)}
	limited("the last step is cut", true, "Storage 100 → 120 GB: 93.0 % used, alarm at 90 %; 150 GB are needed, clamped to spec.storage.maxGB")
	c.Wanted.VolumeGB = 120
	limited("while it is under way", true, "150 GB are needed")
	c.Instance.VolumeGB = 120
	c.Status = FollowUp(c).Status
	limited("once it is there", false, "")
	c.Alarms = []Alarm{storageAt(115)}
	limited("at the cap", true, "Storage stays at 120 GB: 95.8 % used, but spec.storage.maxGB is 120")
	c.Alarms = []Alarm{storageAt(115).without("evidence")}
	limited("while Cloud Eye has no data", true, "Storage stays at 120 GB")
	c.Alarms = nil
	limited("the alarm is over", false, "")
	c.Alarms = []Alarm{usageAt(v1alpha1.MetricCPU, 95)}
	c.Spec.Flavor.MaxVCPUs = new(int32(8))
	limited("a cap of flavors", true, "above the caps of 8 vCPUs and 128 GB")
	c.Spec.Flavor.MaxVCPUs, c.Generation = new(int32(16)), 2
	limited("a new cap", false, "")
}

func TestSmallerReplicaIsWarnedOf(t *testing.T) {
	c := quiet()
	c.Instance.Name = "orders"
	c.Instance.Replicas = []Replica{{Name: "same", VolumeGB: 100}, {Name: "larger", VolumeGB: 120}, {Name: "unknown"}}
	if w := UpdateWarnings(c, &c.Status); len(w) != 0 {
		t.Errorf("warned of %v", w)
	}
	c.Instance.Replicas = append(c.Instance.Replicas, Replica{Name: "reader", VolumeGB: 90})
	w := UpdateWarnings(c, &c.Status)
	const says = "Storage of the primary orders has 100 GB, and a read replica has less: reader (90 GB). Grow the replica to the same size, because the autopilot does not"
	if len(w) != 1 || w[0].Reason != ReasonReplicaSmaller || w[0].Message != says {
		t.Errorf("warned of %v", w)
	}
	if again := UpdateWarnings(c, &c.Status); len(again) != 0 {
		t.Errorf("warned again: %v", again)
	}
}
