// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// cloudFacts returns the judges of the assumptions about the APIs of the cloud: topics, subscriptions, alarm rules,
// metrics and instances.
func cloudFacts() map[string]judge {
	return map[string]judge{
		"topic-exists": func(x *examination) finding {
			switch {
			case x.topicURN == "":
				return unseen("No topic was created")
			case x.seen.topicAgain != nil:
				return holds(false, x.seen.topicAgain.Error())
			}
			return holds(true, "")
		},
		"subscription-exists": func(x *examination) finding {
			if !x.seen.subscribedTwice {
				return unseen("No subscription was created")
			}
			return holds(x.seen.existsCode == "", x.seen.existsCode)
		},
		"subscription-status": func(x *examination) finding {
			if x.seen.subscription == nil || x.confirmation() == nil ||
				x.seen.subscription.Status == otc.SubscriptionUnconfirmed {
				return unseen("No subscription was confirmed")
			}
			return holds(x.seen.subscription.Status == otc.SubscriptionConfirmed, fmt.Sprint(x.seen.subscription.Status))
		},
		"listed-as-sent": func(x *examination) finding {
			if x.seen.subscription == nil && x.seen.ruleNew == nil {
				return unseen("Nothing was listed")
			}
			var differ []string
			if s := x.seen.subscription; s != nil && s.Endpoint != x.PublicURL.String() {
				differ = append(differ, "the endpoint is "+s.Endpoint)
			}
			if r := x.seen.ruleNew; r != nil {
				listed := *r
				listed.State, listed.UpdateTime = "", time.Time{}
				if was, is := fmt.Sprintf("%+v", x.made), fmt.Sprintf("%+v", listed); was != is {
					differ = append(differ, fmt.Sprintf("the rule is %s, and was %s", is, was))
				}
			}
			return holds(len(differ) == 0, strings.Join(differ, "; "))
		},
		"rule-new": func(x *examination) finding { return ruleIs(x.seen.ruleNew, v1alpha1.StateOK) },
		"rule-rewritten": func(x *examination) finding {
			return ruleIs(x.seen.ruleRewritten, v1alpha1.StateAlarm)
		},
		"rule-states": func(x *examination) finding {
			if x.seen.ruleNew == nil {
				return unseen(noRule)
			}
			return holds(slices.Contains([]string{"ok", "alarm", "insufficient_data"}, x.seen.ruleNew.State),
				show(x.seen.ruleNew.State))
		},
		"rule-update-time": func(x *examination) finding {
			if x.seen.ruleLater == nil {
				return unseen(noRule)
			}
			before, later := x.seen.ruleAlarm.UpdateTime, x.seen.ruleLater.UpdateTime
			return holds(later.Equal(before), fmt.Sprintf("%s, and %s later", before.Format(time.RFC3339), later.Sub(before)))
		},
		"rule-raw": func(x *examination) finding {
			if x.seen.waited == 0 || x.seen.ruleAlarm == nil && x.data.util.Time.IsZero() {
				return unseen("No rule was created, or its metric has no data")
			}
			return holds(x.seen.ruleAlarm != nil, "in alarm after "+x.seen.waited.Truncate(time.Second).String())
		},
		"metric-percent": ofStorage(func(x *examination, p otc.Datapoint) finding { return x.comparePercent(p.Average) }),
		"metric-delay": ofStorage(func(x *examination, p otc.Datapoint) finding {
			late := x.data.read.Sub(p.Time)
			return holds(late <= 12*time.Minute, fmt.Sprintf("the newest value is %s old", late.Truncate(time.Second)))
		}),
		"metric-used-space": func(x *examination) finding {
			if x.data.util.Time.IsZero() && x.data.used.Time.IsZero() {
				return unseen(noData)
			}
			return holds(!x.data.used.Time.IsZero(), fmt.Sprintf("%.1f GB", x.data.used.Average))
		},
		"datapoint-utc": ofStorage(func(x *examination, p otc.Datapoint) finding {
			return holds(p.Time.Sub(x.data.read) < 2*time.Minute, fmt.Sprintf("the newest value is of %s, read at %s",
				p.Time.Format(time.RFC3339), x.data.read.UTC().Format(time.RFC3339)))
		}),
		"instance-dimension": func(x *examination) finding {
			if !x.data.ofInstance && !x.data.ofNode {
				return unseen("Cloud Eye lists no data of the database")
			}
			return holds(x.data.ofInstance, x.data.dimension)
		},
		"instance-primary": func(x *examination) finding {
			d := x.data
			switch {
			case d.cpu.Time.IsZero() || d.primary.Time.IsZero() || d.standby.Time.IsZero():
				return unseen("Cloud Eye has no data of an HA instance and both its nodes")
			case math.Abs(d.primary.Average-d.standby.Average) < 1:
				return unseen("Both nodes have the same load at present")
			}
			return holds(math.Abs(d.cpu.Average-d.primary.Average) < math.Abs(d.cpu.Average-d.standby.Average), fmt.Sprintf(
				"CPU %.1f of the instance, %.1f of the primary, %.1f of the standby", d.cpu.Average, d.primary.Average,
				d.standby.Average))
		},
		"catalogue-cloud-eye": func(x *examination) finding {
			if x.api == nil {
				return unseen("The login failed")
			}
			_, how := x.api.Endpoint("ces")
			return holds(how != otc.Derived, how)
		},
		"resize-list": func(x *examination) finding {
			if !x.data.resizeKnown {
				return unseen("No database was examined")
			}
			return holds(x.data.resized, "")
		},
	}
}

// comparePercent reports whether a value of the storage metric is in percent. It compares the value with the used
// space. Without the used space, a value up to 1 may be either percent or a fraction of 1.
func (x *examination) comparePercent(value float64) finding {
	truth, known := x.data.percent()
	switch {
	case known && math.Abs(value-truth) <= 5:
		return holds(true, fmt.Sprintf("%.1f, where %.1f %% are used", value, truth))
	case known:
		return holds(false, fmt.Sprintf("%v, where %.1f %% are used", value, truth))
	case value > 1 && value <= 100:
		return holds(true, fmt.Sprintf("%.1f", value))
	}
	return unseen("Without the used space, the value may be percent or a fraction of 1")
}

// ofStorage judges the newest value of the storage metric.
func ofStorage(find func(*examination, otc.Datapoint) finding) judge {
	return func(x *examination) finding {
		if x.data.util.Time.IsZero() {
			return unseen(noData)
		}
		return find(x, x.data.util)
	}
}

func ruleIs(r *otc.Rule, want v1alpha1.State) finding {
	if r == nil {
		return unseen(noRule)
	}
	return holds(strings.EqualFold(r.State, string(want)), r.State)
}
