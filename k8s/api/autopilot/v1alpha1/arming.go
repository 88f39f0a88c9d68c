// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"time"
)

// DesiredRule is the alarm rule that a policy asks for. It is not stored; Rule describes the rule that exists in the
// cloud.
//
// +kubebuilder:object:generate=false
type DesiredRule struct {
	Metric           Metric
	ThresholdPercent int
	PeriodSeconds    int // one of Cloud Eye's periods; 1 means raw data
	Count            int // how many periods in a row must be at or over the threshold
	RepeatSeconds    int // how often Cloud Eye repeats an alarm that lasts; 0 means never
}

// DesiredAlarms describes the topic, subscription and alarm rules that one database should have in the cloud. It is not
// stored; Alarms describes what exists.
//
// +kubebuilder:object:generate=false
type DesiredAlarms struct {
	Autopilot  *RdsAutopilot // owner of the alarms; its status has the recorded ones
	InstanceID string
	Engine     string // of the instance, such as MySQL
	Dimension  string // of all rules, as name:value; empty means the dimension of the instance
	Rules      []DesiredRule
	Renewed    bool      // the policy has changed, so a rule that differs is not reported as restored
	NotBefore  time.Time // ignore lists that were read before this time
}

// Errors of arming. They decide the reason of the condition Armed, and when arming is tried again.
var (
	// ErrQuota means that the tenant's quota allows no further topic, subscription or rule.
	ErrQuota = errors.New("quota exceeded")
	// ErrConfirmationLimit means that only the subscription is missing. It has to wait, because SMN sends a limited
	// number of confirmations.
	ErrConfirmationLimit = errors.New("waiting for SMN's limit on confirmations")
	// ErrSubscriptionRefused means that SMN refuses the topic or the subscription, and the rest of the cloud answers. A
	// retry fails until somebody has changed what SMN's text names.
	ErrSubscriptionRefused = errors.New("subscription refused")
)
