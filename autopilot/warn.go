// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	nearCap       = 80                 // percent of the cap
	brakePatience = 6 * time.Hour      // a flavor that waits for the fleet brake for longer is overdue
	doublingSpan  = 7 * 24 * time.Hour // a volume that doubles within it may be running away
	surelyPercent = 2                  // so much used is not one percent at most, whatever the file system takes
	formerKept    = 8                  // one a day, and the day that is half in the span
)

// Warning is something about a volume that a person should know before it is too late.
type Warning struct {
	Reason  Reason
	Message string
}

// UpdateWarnings finds what people were not warned of yet, and enters it into the status, so that the next leader does not
// warn again. What no longer holds is forgotten, so that it can be warned of again.
func UpdateWarnings(c Case, s *v1alpha1.Status) []Warning {
	if c.Instance == nil || c.Instance.VolumeGB == 0 || Validate(c.Spec, v1alpha1.KindVolume) != nil {
		return nil
	}
	holds := slices.Concat(c.warnings(s.FormerVolumes), c.waitsForOthers(s.Decisions), c.silentRules(), c.fractions(s.Warned))
	size := ClampInt32(c.Instance.VolumeGB)
	var kept []v1alpha1.Warned
	var news []Warning
	for _, w := range holds {
		i := slices.IndexFunc(s.Warned, func(x v1alpha1.Warned) bool { return x.Reason == string(w.Reason) })
		if i >= 0 && (w.Reason != ReasonVolumeDoubled || size < 2*s.Warned[i].VolumeGB) {
			kept = append(kept, s.Warned[i])
			continue
		}
		kept = append(kept, v1alpha1.Warned{Reason: string(w.Reason), VolumeGB: size, Time: *seconds(c.Now)})
		news = append(news, w)
	}
	s.Warned = kept
	return news
}

// warnings are those that hold now.
func (c Case) warnings(former []v1alpha1.FormerVolume) []Warning {
	size, most := c.Instance.VolumeGB, int(c.Spec.Storage.MaxGB)
	var found []Warning
	switch {
	case size >= most:
		found = append(found, Warning{ReasonCapReached, fmt.Sprintf("Storage has %d GB and spec.storage.maxGB is %d: it grows no further", size, most)})
	case 100*size >= nearCap*most:
		found = append(found, Warning{ReasonNearCap, fmt.Sprintf("Storage has %d GB, %d %% of spec.storage.maxGB, %d GB: beyond that it does not grow", size, 100*size/most, most)})
	}
	if n := len(former); n > 0 && size >= 2*int(former[n-1].VolumeGB) {
		found = append(found, Warning{ReasonVolumeDoubled, fmt.Sprintf("Storage has doubled within 7 days, from %d to %d GB: is that what fills it?", former[n-1].VolumeGB, size)})
	}
	return found
}

// silentRules warns of a rule that should have raised its alarm.
func (c Case) silentRules() (found []Warning) {
	for _, a := range c.Alarms {
		if !a.InForce(c.Now) && a.unheard(c) {
			found = append(found, Warning{ReasonRuleSilent, fmt.Sprintf("Cloud Eye says %q of the storage rule, although %.1f of %d GB are used since %s or before: what is used is acted on, at each sweep. rds-autopilot doctor looks at the rules",
				a.State, a.Evidence.UsedGB, c.Instance.VolumeGB, at(a.UnheardTime))})
		}
	}
	return found
}

// fractions warns of percentages that are none: CPU and memory have no other source. Not each round reads them.
func (c Case) fractions(warned []v1alpha1.Warned) []Warning {
	for _, a := range c.Alarms {
		switch {
		case !metricRow(a.Metric).InGB():
		case a.Evidence.Percent == 0 && slices.ContainsFunc(warned, func(w v1alpha1.Warned) bool { return w.Reason == string(ReasonNotPercent) }):
			return []Warning{{Reason: ReasonNotPercent}} // told before, and still so as far as is known
		case c.showsFractions(a.Evidence):
			return []Warning{{ReasonNotPercent, fmt.Sprintf("Cloud Eye says %.2f where %.1f of %d GB are used: its percentages are fractions of 1, and no threshold is ever reached. Storage is acted on by its used space; watch CPU and memory of all databases with %s yourself, for they raise no alarm",
				a.Evidence.Percent, a.Evidence.UsedGB, c.Instance.VolumeGB, c.Instance.Engine)}}
		}
	}
	return nil
}

// showsFractions reports whether a percentage of storage is surely none, by the used space.
func (c Case) showsFractions(e Evidence) bool {
	return e.Percent > 0 && e.Percent <= 1 && 100*e.UsedGB/float64(c.Instance.VolumeGB) > surelyPercent
}

// waitsForOthers warns of a flavor that has waited for --max-flavor-changes for very long.
func (c Case) waitsForOthers(records []v1alpha1.DecisionRecord) []Warning {
	for _, m := range Metrics() {
		i := slices.IndexFunc(records, func(r v1alpha1.DecisionRecord) bool { return r.Metric == m })
		if i < 0 || records[i].Reason != string(ReasonFleetBrake) || c.Now.Sub(records[i].Time.Time) < brakePatience {
			continue
		}
		return []Warning{{ReasonFleetBrake, fmt.Sprintf("The flavor has waited for others in the cluster since %s: look at the changes that do not end, or raise --max-flavor-changes", at(records[i].Time.Time))}}
	}
	return nil
}

// formerVolumes brings the sizes of the last days up to what the cloud has now. Of a day it keeps the first.
func (c Case) formerVolumes(last *v1alpha1.Instance) []v1alpha1.FormerVolume {
	former := slices.Clone(c.Status.FormerVolumes)
	if last == nil || last.ID != c.Instance.ID {
		former = nil
	} else if was := last.VolumeGB; was > 0 && int(was) < c.Instance.VolumeGB {
		day := c.Now.UTC().Truncate(24 * time.Hour)
		if len(former) == 0 || former[0].Until.Time.Before(day) {
			former = slices.Insert(former, 0, v1alpha1.FormerVolume{VolumeGB: was, Until: *seconds(c.Now)})
		}
	}
	former = slices.DeleteFunc(former, func(f v1alpha1.FormerVolume) bool { return c.Now.Sub(f.Until.Time) >= doublingSpan })
	if len(former) == 0 {
		return nil
	}
	return former[:min(len(former), formerKept)]
}
