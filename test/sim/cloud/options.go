// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"cmp"
	"crypto/rsa"
	"fmt"
	"net/http"
	"time"
)

// Options are fixed for the life of a Cloud. The zero value is a cloud in eu-de on the wall clock.
type Options struct {
	// Region is eu-de if empty.
	Region string
	// Now is the only source of time; time.Now if nil.
	Now func() time.Time
	// Speed divides the cloud's durations; 1 if zero. At 60 a minute takes a second.
	Speed float64
	// Settings at the start; see Cloud.Configure.
	Settings Settings
	// SigningKey is SMN's first signing key. If it is nil, the cloud generates one.
	SigningKey *rsa.PrivateKey
	// Fault is called once per request, before the request is applied. It returns nil for no fault.
	Fault func(r *http.Request) *Fault
	// DeliveryFault is called before each attempt to deliver a message.
	DeliveryFault func(Delivery) DeliveryFault
	// Transport delivers messages. If it is nil, any certificate of an endpoint is accepted, because the documents do not
	// say whether SMN checks the chain.
	Transport http.RoundTripper
	// Local opens no listeners. Cloud.RoundTrip then serves the host names of the real cloud. A bubble of testing/synctest
	// needs this.
	Local bool
}

// Settings may be changed while the cloud runs. Zero values are the defaults.
type Settings struct {
	// MetricDelay is the time from the end of a minute until its raw datapoint is visible. RDS umn: 5 to 10 minutes.
	MetricDelay time.Duration
	// NewRule is the state of a new rule. Empty means ok, which is the state that a rule of Open Telekom Cloud had.
	NewRule RuleState
	// RewrittenRule is the state of a rule whose condition was replaced; undocumented. Empty keeps the state.
	RewrittenRule RuleState
	// NoInstanceLevelData leaves data at the node-level dimensions only. The documents do not say which dimensions have
	// data.
	NoInstanceLevelData bool `breaks:"instance-dimension"`
	// StartInclusive makes a page of rules begin at the rule named by start, not after it. The documents say both.
	StartInclusive bool `breaks:"rule-pages"`
	// NoCESInCatalog leaves Cloud Eye out of the catalogue, so that it must be derived from volumev2.
	NoCESInCatalog bool `breaks:"catalogue-cloud-eye"`
	// RefusePrivateEndpoints refuses subscriptions of loopback and private addresses: 403 SMN.0069.
	RefusePrivateEndpoints bool
	// ExistsAsCode answers Subscribe of an endpoint that is subscribed already with 200, the code SMN.0190 and no URN, as
	// the list of error codes says. Without it the answer is 200 and the URN, as the call's own page says.
	ExistsAsCode bool `breaks:"subscription-exists"`
	// Normalizes lists some values in another form than they were sent: the filter of a rule of raw data, and the trailing
	// slash and the case of the host of an endpoint. The documents do not mention it.
	Normalizes bool `breaks:"listed-as-sent"`
	// HideStorageFull lists a full instance as ACTIVE. STORAGE FULL is documented, but not for the list.
	HideStorageFull bool `breaks:"storage-full-listed"`
	// ReadOnlyStopsWrites keeps a larger Workload.UsedGB from a read-only instance: its used space stays as it was. Growth
	// past the limit in one step stops at the limit, and the instance is read-only. Less used space always applies.
	ReadOnlyStopsWrites bool
	// RefuseEnlargeWhenFull refuses to enlarge a full instance: 409 DBS.200316. The documents say both.
	RefuseEnlargeWhenFull bool `breaks:"enlarge-when-full"`
	// NoResizeList removes the call flavors-resize: 404.
	NoResizeList bool `breaks:"resize-list"`
	// UnknownFlavors are codes, with the suffix of the mode, that the catalogue of flavors does not list. Instances keep
	// them, and flavors-resize still offers them.
	UnknownFlavors []string
	// MinorVersions lists MySQL 8.0 as 8.0.28 and PostgreSQL 14 as 14.6, in version and in complete_version of an
	// instance. The catalogue of flavors keeps 8.0 and 14. The documents do not say which of the two the list shows.
	MinorVersions bool
	// JobsFail makes jobs end as Failed, without effect.
	JobsFail bool
	// Refuse makes the cloud refuse EnlargeVolume, ResizeFlavor, ShowJob or ListResizeFlavors, whatever the state of the
	// instance.
	Refuse map[string]Refusal

	Odd

	TopicQuota int // 3000 if zero
	RuleQuota  int // 1000 if zero

	EnlargeDuration time.Duration // 4 minutes if zero
	ResizeDuration  time.Duration // 10 minutes if zero
	RetryInterval   time.Duration // between attempts to deliver; 1 minute if zero
}

func (s *Settings) setDefaults() {
	s.TopicQuota = cmp.Or(s.TopicQuota, 3000)
	s.RuleQuota = cmp.Or(s.RuleQuota, 1000)
	s.EnlargeDuration = cmp.Or(s.EnlargeDuration, 4*time.Minute)
	s.ResizeDuration = cmp.Or(s.ResizeDuration, 10*time.Minute)
	s.RetryInterval = cmp.Or(s.RetryInterval, time.Minute)
}

func (o *Options) setDefaults() error {
	o.Region, o.Speed = cmp.Or(o.Region, "eu-de"), cmp.Or(o.Speed, 1)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Speed < 0 || float64(time.Minute)/o.Speed < float64(time.Millisecond) {
		return fmt.Errorf("speed %v must be positive and at most 60000", o.Speed)
	}
	o.Settings.setDefaults()
	return nil
}

// Configure changes the settings of a running cloud.
func (c *Cloud) Configure(change func(*Settings)) {
	c.lock()
	defer c.mu.Unlock()
	change(&c.settings)
	c.settings.setDefaults()
}
