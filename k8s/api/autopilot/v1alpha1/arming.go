// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// DesiredAlarms describes the alarm rules that one database should have in the cloud. It is not stored; Alarms
// describes what exists.
//
// +kubebuilder:object:generate=false
type DesiredAlarms struct {
	Namespace, Name string // of the RdsAutopilot
	Recommends      bool   // the owner changes nothing, so its rules claim nothing
	Recorded        Alarms // what is recorded in its status
	TopicURN        string // to notify; empty means that there is none yet
	InstanceID      string
	Engine          string // of the instance, such as MySQL
	Dimension       string // of all rules, as name:value; empty means the dimension of the instance
	Rules           []DesiredRule
	Renewed         bool      // this process has not applied this policy yet, so a difference is no act of others
	NotBefore       time.Time // ignore lists that were read before this time
}

// Topic is the SMN topic of the installation and the subscription of the public URL to it. The ConfigMap
// rds-autopilot-topic of the service's namespace holds it.
//
// +kubebuilder:object:generate=false
type Topic struct {
	URN             string
	SubscriptionURN string
	URL             string // that is subscribed
	State           SubscriptionState
	Message         string       // of the last failure; empty if there was none
	RequestedTime   *metav1.Time // when the confirmation was last requested
}

// SubscriptionState is the state of the subscription.
type SubscriptionState string

// The states of a subscription. Before the first request it has none.
const (
	SubscriptionPending   SubscriptionState = "Pending"
	SubscriptionConfirmed SubscriptionState = "Confirmed"
	SubscriptionRefused   SubscriptionState = "Refused" // SMN refuses the topic or the subscription
)

// Claim says who manages an instance, by the alarm rules in the cloud.
//
// +kubebuilder:object:generate=false
type Claim struct {
	Holds   bool   // this object does: the list has a rule of its own, and it has precedence
	By      string // another object does, as NAMESPACE/NAME; empty if there is none
	Cluster string // of that object, if it is in another one
	Rule    string // the name and id of its rule that was found; empty if it only names the instance
}

// Errors of arming. They decide the reason of the condition Armed, and when arming is tried again.
var (
	// ErrQuota means that the tenant's quota allows no further rule.
	ErrQuota = errors.New("quota exceeded")
	// ErrRuleRefused means that Cloud Eye answers and creates no rule. A retry fails until somebody has changed what its
	// text names.
	ErrRuleRefused = errors.New("rule refused")
	// ErrNameTooLong means that namespace and name do not fit into the mark of a rule.
	ErrNameTooLong = errors.New("name too long")
)
