// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// nearCap is the percentage of spec.storage.maxGB from which a warning is given, so that there is time to raise it.
	nearCap = 80
	// brakePatience is how long a flavor may wait for --max-flavor-changes without a warning.
	brakePatience = 6 * time.Hour
)

// UpdateWarnings returns the warnings that are new and stores them in the status, so that the next leader does not
// repeat them. It removes warnings that no longer hold, so that they can be given again later.
func UpdateWarnings(c autopilot.Case, s *v1alpha1.Status) []autopilot.Warning {
	if c.Instance == nil || c.Instance.VolumeGB == 0 {
		return nil
	}
	holds := slices.Concat(warnings(c), waitsForOthers(c, s), replicaWarning(c))
	var kept []v1alpha1.Warned
	var news []autopilot.Warning
	for _, w := range holds {
		i := slices.IndexFunc(s.Warned, func(x v1alpha1.Warned) bool { return x.Reason == string(w.Reason) })
		if i >= 0 {
			kept = append(kept, s.Warned[i])
			continue
		}
		kept = append(kept, v1alpha1.Warned{Reason: string(w.Reason), Time: *autopilot.Seconds(c.Now)})
		news = append(news, w)
	}
	s.Warned = kept
	return news
}

// warnings returns those about the space of the volume.
func warnings(c autopilot.Case) (found []autopilot.Warning) {
	add := func(r autopilot.Reason, format string, args ...any) {
		found = append(found, autopilot.Warning{Reason: r, Message: fmt.Sprintf(format, args...)})
	}
	size, most := c.Instance.VolumeGB, c.MaxGB()
	switch {
	case size >= most:
		add(autopilot.ReasonCapReached, "Storage is at its limit: %d GB (%s). Raise maxGB or free space", size, c.MaxGBText())
	case 100*size >= nearCap*most:
		add(autopilot.ReasonNearCap, "Storage has %d GB, %d %% of its limit of %d GB (spec.storage.maxGB). Raise maxGB or free space before it stops growing",
			size, 100*size/most, most)
	}
	for _, a := range c.Alarms {
		if a.InForce(c.Now) || !a.IsOverdue(c) {
			continue
		}
		reports := "no state of a storage rule"
		if a.State != "" {
			reports = fmt.Sprintf("%q for the storage rule", a.State)
		}
		add(autopilot.ReasonRuleSilent, "Cloud Eye reports %s, although storage has been over its threshold since %s or earlier (%.1f of %d GB used). The autopilot acts on the used space. Run rds-autopilot doctor: it shows whether Cloud Eye evaluates rules",
			reports, autopilot.TimeText(c.OverdueSince(a)), a.Evidence.UsedGB, size)
	}
	if c.Status.ReadOnly != nil {
		add(autopilot.ReasonReadOnly, "The database has been read-only since %s. With %d GB it is writable again once at most %.0f GB are used. The autopilot grows the volume if its limits allow it; otherwise raise maxGB or free space",
			autopilot.TimeText(c.Status.ReadOnly.SinceTime.Time), size, autopilot.WritableAt(size))
	}
	return found
}

// replicaWarning returns a warning if a read replica has a smaller volume than its primary and no RdsAutopilot manages
// it. It is full first, and a full replica of PostgreSQL makes its primary keep WAL.
func replicaWarning(c autopilot.Case) []autopilot.Warning {
	var smaller []string
	for _, r := range c.Instance.Replicas {
		if r.VolumeGB > 0 && r.VolumeGB < c.Instance.VolumeGB && !r.IsManaged {
			smaller = append(smaller, fmt.Sprintf("%s (%d GB)", r.Name, r.VolumeGB))
		}
	}
	if len(smaller) == 0 {
		return nil
	}
	slices.Sort(smaller)
	return []autopilot.Warning{{Reason: autopilot.ReasonReplicaSmaller, Message: fmt.Sprintf("Storage of the primary %s has %d GB, and a read replica has less: %s. Grow the replica to the same size, or create an RdsAutopilot for it",
		c.Instance.Name, c.Instance.VolumeGB, strings.Join(smaller, ", "))}}
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
