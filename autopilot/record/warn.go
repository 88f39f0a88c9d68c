// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// nearCap is the percentage of spec.storage.maxGB from which a warning is given, so that there is time to raise it.
	nearCap = 80
	// brakePatience is how long a flavor may wait for --max-flavor-changes without a warning.
	brakePatience = 6 * time.Hour
	// doublingSpan is the time in which a doubled volume leads to a warning, because a fault may be filling it.
	doublingSpan = 7 * 24 * time.Hour
	// formerKept is how many former sizes are kept: one a day for doublingSpan, which touches eight days.
	formerKept = 8
)

// UpdateWarnings returns the warnings that are new and stores them in the status, so that the next leader does not
// repeat them. It removes warnings that no longer hold, so that they can be given again later.
func UpdateWarnings(c autopilot.Case, s *v1alpha1.Status) []autopilot.Warning {
	if c.Instance == nil || c.Instance.VolumeGB == 0 || autopilot.Validate(c.Spec, v1alpha1.KindVolume) != nil {
		return nil
	}
	holds := slices.Concat(c.Explained, warnings(c, s.FormerVolumes), waitsForOthers(c, s), silentRules(c),
		readOnlyWarning(c), replicaWarning(c))
	size := autopilot.ClampInt32(c.Instance.VolumeGB)
	var kept []v1alpha1.Warned
	var news []autopilot.Warning
	for _, w := range holds {
		i := slices.IndexFunc(s.Warned, func(x v1alpha1.Warned) bool { return x.Reason == string(w.Reason) })
		if i >= 0 && (w.Reason != autopilot.ReasonVolumeDoubled || size < 2*s.Warned[i].VolumeGB) {
			kept = append(kept, s.Warned[i])
			continue
		}
		kept = append(kept, v1alpha1.Warned{Reason: string(w.Reason), VolumeGB: size, Time: *autopilot.Seconds(c.Now)})
		news = append(news, w)
	}
	s.Warned = kept
	return news
}

// warnings returns the warnings about the size of the volume that hold now.
func warnings(c autopilot.Case, former []v1alpha1.FormerVolume) []autopilot.Warning {
	size, most := c.Instance.VolumeGB, c.MaxGB()
	var found []autopilot.Warning
	switch {
	case size >= most:
		found = append(found, autopilot.Warning{Reason: autopilot.ReasonCapReached, Message: fmt.Sprintf("Storage is at its limit: %d GB (%s). Raise maxGB or free space", size, c.MaxGBText())})
	case 100*size >= nearCap*most:
		found = append(found, autopilot.Warning{Reason: autopilot.ReasonNearCap, Message: fmt.Sprintf("Storage has %d GB, %d %% of its limit of %d GB (spec.storage.maxGB). Raise maxGB or free space before it stops growing", size, 100*size/most, most)})
	}
	if n := len(former); n > 0 && size >= 2*int(former[n-1].VolumeGB) {
		found = append(found, autopilot.Warning{Reason: autopilot.ReasonVolumeDoubled, Message: fmt.Sprintf(
			"Storage has doubled within 7 days, from %d to %d GB. Check what fills it", former[n-1].VolumeGB, size)})
	}
	return found
}

// silentRules returns a warning for each rule that should have raised its alarm.
func silentRules(c autopilot.Case) (found []autopilot.Warning) {
	for _, a := range c.Alarms {
		if a.InForce(c.Now) || !a.IsOverdue(c) {
			continue
		}
		reports := "no state of a storage rule"
		if a.State != "" {
			reports = fmt.Sprintf("%q for the storage rule", a.State)
		}
		found = append(found, autopilot.Warning{Reason: autopilot.ReasonRuleSilent, Message: fmt.Sprintf("Cloud Eye reports %s, although storage has been over its threshold since %s or earlier (%.1f of %d GB used). The autopilot acts on the used space. Run rds-autopilot doctor: it shows whether Cloud Eye evaluates rules",
			reports, autopilot.TimeText(a.AlarmOverdueSince), a.Evidence.UsedGB, c.Instance.VolumeGB)})
	}
	return found
}

// readOnlyWarning returns a warning if the database is read-only.
func readOnlyWarning(c autopilot.Case) []autopilot.Warning {
	if c.Status.ReadOnly == nil {
		return nil
	}
	size := c.Instance.VolumeGB
	return []autopilot.Warning{{Reason: autopilot.ReasonReadOnly, Message: fmt.Sprintf("The database has been read-only since %s. With %d GB it is writable again once at most %.0f GB are used. The autopilot grows the volume if its limits allow it; otherwise raise maxGB or free space",
		autopilot.TimeText(c.Status.ReadOnly.SinceTime.Time), size, autopilot.WritableAt(size))}}
}

// replicaWarning returns a warning if a read replica has a smaller volume than its primary. It is full first, and a
// full replica of PostgreSQL makes its primary keep WAL. A replica that the autopilot grows after its primary has 10
// minutes before it is reported.
func replicaWarning(c autopilot.Case) []autopilot.Warning {
	size := c.Instance.VolumeGB
	smaller := c.Instance.SmallerReplicas(size)
	grown := autopilot.RecentGrowth(c.Status.Changes, c.Now)
	if follow := c.ReplicasToFollow(); len(follow) == len(smaller) &&
		(len(smaller) == 0 || c.Now.Sub(grown) < autopilot.ReplicaPatience) {
		return nil
	}
	advice := "Grow the replica to the same size, because the autopilot does not"
	if c.Spec.Apply == v1alpha1.ApplyCloud && c.Mode == v1alpha1.ModeAuto {
		advice = "Grow the replica to the same size. The autopilot tries to when the primary grows"
		for _, r := range smaller {
			if obstacle := r.Obstacle(size); obstacle != "" {
				advice += fmt.Sprintf(", but not %s: %s", r.Name, obstacle)
			}
		}
	}
	return []autopilot.Warning{{Reason: autopilot.ReasonReplicaSmaller, Message: fmt.Sprintf("Storage of the primary %s has %d GB, and a read replica has less: %s. %s",
		c.Instance.Name, size, autopilot.ReplicaSizes(smaller), advice)}}
}

// waitsForOthers returns a warning if a flavor has waited for --max-flavor-changes for 6 hours. A record alone does not
// show that: the alarm may have ended since, and may have come back.
func waitsForOthers(c autopilot.Case, s *v1alpha1.Status) []autopilot.Warning {
	for _, m := range autopilot.Metrics() {
		i := slices.IndexFunc(s.Decisions, func(r v1alpha1.DecisionRecord) bool { return r.Metric == m })
		n := slices.IndexFunc(s.Held, func(h v1alpha1.Held) bool { return h.Kind == autopilot.HelpedBy(m) })
		const brake = string(autopilot.ReasonFleetBrake)
		if i < 0 || n < 0 || s.Decisions[i].Reason != brake || s.Held[n].Reason != brake {
			continue
		}
		since := s.Decisions[i].Time.Time
		if needed := s.Held[n].SinceTime.Time; needed.After(since) {
			since = needed
		}
		if c.Now.Sub(since) >= brakePatience {
			return []autopilot.Warning{{Reason: autopilot.ReasonFleetBrake, Message: fmt.Sprintf("The flavor has waited for other changes in the cluster since %s. Check which changes do not end, or raise --max-flavor-changes", autopilot.TimeText(since))}}
		}
	}
	return nil
}

// formerVolumes returns the former sizes within doublingSpan, with the last size if the volume has grown. It keeps the
// first former size of each day.
func formerVolumes(c autopilot.Case, last *v1alpha1.Instance) []v1alpha1.FormerVolume {
	former := slices.Clone(c.Status.FormerVolumes)
	if last == nil || last.ID != c.Instance.ID {
		former = nil
	} else if was := last.VolumeGB; was > 0 && int(was) < c.Instance.VolumeGB {
		day := c.Now.UTC().Truncate(24 * time.Hour)
		if len(former) == 0 || former[0].Until.Time.Before(day) {
			former = slices.Insert(former, 0, v1alpha1.FormerVolume{VolumeGB: was, Until: *autopilot.Seconds(c.Now)})
		}
	}
	former = slices.DeleteFunc(former, func(f v1alpha1.FormerVolume) bool { return c.Now.Sub(f.Until.Time) >= doublingSpan })
	if len(former) == 0 {
		return nil
	}
	return former[:min(len(former), formerKept)]
}
