package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Arming makes the alarms of databases come, and stop, by the package alarms.
type Arming struct {
	alarms    *alarms.Alarms
	cloud     *Cloud
	clusterID string
	endpoint  string // the public URL
	everyone  bool   // all namespaces are watched: what belongs to no autopilot we see, belongs to none
}

// NewArming arms on behalf of a cluster. endpoint is the URL that alarms are sent to. Orphans are removed only where every
// namespace is watched: those of others cannot be told from ours else.
func NewArming(c *Cloud, clusterID, endpoint string, everyNamespace bool) *Arming {
	return &Arming{alarms: alarms.New(listing{c.api, c}, c.now), cloud: c, clusterID: clusterID, endpoint: endpoint, everyone: everyNamespace}
}

// listing is the API for package alarms, with lists that are read once for all callers of the same time: arming 500
// databases one by one would otherwise list 1,500 rules 500 times.
type listing struct {
	*otc.Cloud
	shared *Cloud
}

// Rules lists what there is now.
func (l listing) Rules(ctx context.Context) ([]otc.Rule, error) {
	return l.shared.rules.get(ctx, l.shared.now())
}

// Topics is like Rules.
func (l listing) Topics(ctx context.Context) ([]otc.Topic, error) {
	return l.shared.topics.get(ctx, l.shared.now())
}

// Ensure implements controller.Arming.
func (a *Arming) Ensure(ctx context.Context, w controller.Arms, have v1alpha1.Alarms, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	want, err := a.want(w)
	if err != nil {
		return have, nil, err
	}
	listed, err := a.cloud.listing.get(ctx, w.NotBefore)
	if err != nil {
		return have, nil, err
	}
	got, mended, err := a.alarms.Ensure(ctx, want, toHave(have), listed, func(h alarms.Have) error { return record(fromHave(h)) })
	if errors.Is(err, otc.ErrQuota) {
		err = fmt.Errorf("%w: %w", controller.ErrQuota, err)
	}
	if _, waits := errors.AsType[alarms.ConfirmationLimitError](err); waits {
		err = fmt.Errorf("%w: %w", controller.ErrLater, err)
	}
	return fromHave(got), mended, err
}

func (a *Arming) want(w controller.Arms) (alarms.Want, error) {
	dimension, value, _ := strings.Cut(w.Dimension, ":")
	if dimension == "" {
		var err error
		if dimension, err = alarms.InstanceDimension(w.Instance.Engine); err != nil {
			return alarms.Want{}, err
		}
		value = w.Instance.ID
	}
	want := alarms.Want{
		Name:      name(w.Autopilot),
		Namespace: w.Autopilot.Namespace, ObjectName: w.Autopilot.Name, ClusterID: a.clusterID, Endpoint: a.endpoint, Renewed: w.Renewed,
	}
	for _, r := range w.Rules {
		want.Rules = append(want.Rules, alarms.WantRule{
			Metric: string(r.Metric), ThresholdPercent: r.ThresholdPercent, PeriodSeconds: r.PeriodSeconds,
			Count: r.Count, RepeatSeconds: r.RepeatSeconds, Dimension: dimension, DimensionValue: value,
		})
	}
	return want, nil
}

func name(a *v1alpha1.RdsAutopilot) string { return alarms.Name(a.Namespace, a.Name, string(a.UID)) }

// Remove implements controller.Arming.
func (a *Arming) Remove(ctx context.Context, rap *v1alpha1.RdsAutopilot, have v1alpha1.Alarms) error {
	return a.alarms.Remove(ctx, name(rap), toHave(have))
}

// Dimension implements controller.Arming.
func (a *Arming) Dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	dimension, value, err := a.alarms.Dimension(ctx, inst.Engine, inst.ID, inst.Primary)
	return dimension + ":" + value, err
}

// Orphans implements controller.Arming.
func (a *Arming) Orphans(ctx context.Context, notBefore time.Time, known []*v1alpha1.RdsAutopilot, ask func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) (removed []string, foreign int, err error) {
	listed, err := a.cloud.listing.get(ctx, notBefore)
	if err != nil {
		return nil, 0, err
	}
	orphans, foreign := listed.Orphans(a.clusterID, among(known))
	if len(orphans) == 0 || !a.everyone {
		return nil, foreign, listed.Err()
	}
	all, err := ask(ctx)
	if err != nil {
		return nil, foreign, err
	}
	orphans, foreign = listed.Orphans(a.clusterID, among(all))
	for _, o := range orphans {
		if err := a.alarms.RemoveOrphan(ctx, o); err != nil {
			return removed, foreign, fmt.Errorf("remove %s: %w", o.Name, err)
		}
		removed = append(removed, o.Name)
	}
	return removed, foreign, listed.Err()
}

// among reports whether a name in the cloud belongs to one of these.
func among(living []*v1alpha1.RdsAutopilot) func(string) bool {
	names := make(map[string]bool, len(living))
	for _, rap := range living {
		names[name(rap)] = true
	}
	return func(n string) bool { return names[n] }
}

func toHave(a v1alpha1.Alarms) alarms.Have {
	h := alarms.Have{TopicURN: a.TopicURN, SubscriptionURN: a.SubscriptionURN, Subscription: string(a.Subscription)}
	if a.SubscribedTime != nil {
		h.SubscribedTime = a.SubscribedTime.Time
	}
	for _, r := range a.Rules {
		have := alarms.HaveRule{
			Metric: string(r.Metric), ID: r.AlarmID, ThresholdPercent: int(r.ThresholdPercent), Dimension: r.Dimension, State: string(r.State),
		}
		if r.StateTime != nil {
			have.StateTime = r.StateTime.Time
		}
		h.Rules = append(h.Rules, have)
	}
	return h
}

func fromHave(h alarms.Have) v1alpha1.Alarms {
	a := v1alpha1.Alarms{TopicURN: h.TopicURN, SubscriptionURN: h.SubscriptionURN, Subscription: v1alpha1.SubscriptionState(h.Subscription)}
	if !h.SubscribedTime.IsZero() {
		t := metav1.NewTime(h.SubscribedTime.Truncate(time.Second))
		a.SubscribedTime = &t
	}
	for _, r := range h.Rules {
		rule := v1alpha1.Rule{
			Metric: v1alpha1.Metric(r.Metric), AlarmID: r.ID, ThresholdPercent: autopilot.Count(r.ThresholdPercent), Dimension: r.Dimension, State: v1alpha1.State(r.State),
		}
		if !r.StateTime.IsZero() {
			t := metav1.NewMicroTime(r.StateTime)
			rule.StateTime = &t
		}
		a.Rules = append(a.Rules, rule)
	}
	return a
}
