package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Reasons of the warnings about messages.
const (
	reasonUnreadable = "AlarmUnreadable"
	reasonConfirm    = "ConfirmationRefused"
)

// receive goes through the checks, cheapest and most closed first, and leaves what came out in f.
func (r *Receiver) receive(ctx context.Context, body []byte, f *finding) {
	e, err := smn.ParseEnvelope(body)
	if err != nil {
		f.result, f.why = resultMalformed, err
		return
	}
	f.typ, f.id = e.Type, e.MessageID
	if !e.Type.Known() {
		f.result, f.why = resultIgnored, errors.New("a type of message that is not known")
		return
	}
	target, res, err := r.ours(ctx, e.TopicURN)
	if err != nil {
		f.result, f.why = res, err
		return
	}
	f.target = target
	now := r.Now()
	if age := now.Sub(e.Time); age > r.MaxMessageAge || age < -MaxAhead {
		f.result, f.why = resultExpired, fmt.Errorf("signed at %s", e.Timestamp)
		return
	}
	if err := r.Verifier.Verify(ctx, e, r.Book.SignedBefore(e.CertURL)); err != nil {
		f.result, f.why = resultUnavailable, err
		if errors.Is(err, smn.ErrForged) {
			f.result = resultForged
		}
		return
	}
	switch e.Type {
	case smn.TypeConfirmation:
		f.result, f.why = r.confirm(ctx, target, e)
	case smn.TypeUnsubscribed:
		f.result, f.why = r.storeSubscription(ctx, target, e, resultStored)
	default:
		f.result, f.why = r.alarm(ctx, target, e)
	}
}

// ours finds the autopilot of a topic. A confirmation can arrive before the watch event that would tell of its topic,
// so a URN that could be ours is looked up once more.
func (r *Receiver) ours(ctx context.Context, urn string) (*v1alpha1.RdsAutopilot, result, error) {
	if found := r.Book.ByTopic(urn); len(found) > 0 {
		return found[0], "", nil
	}
	if !r.OurTopics(urn) {
		return nil, resultForeign, errors.New("the topic is not ours")
	}
	if !r.Book.Expects(urn) { // strangers can name any number of those, so they share few places and a rate
		end, err := r.topics.begin(ctx)
		if err != nil {
			return nil, resultUnavailable, fmt.Errorf("topics that are not in the cache: %w", err)
		}
		defer end()
	}
	found, err := r.Book.ByTopicLive(ctx, urn)
	switch {
	case err != nil:
		return nil, resultUnavailable, fmt.Errorf("look up the topic: %w", err)
	case len(found) == 0:
		return nil, resultForeign, errors.New("the topic is not ours")
	}
	return found[0], "", nil
}

// alarm stores the signal of a notification.
func (r *Receiver) alarm(ctx context.Context, target *v1alpha1.RdsAutopilot, e smn.Envelope) (result, error) {
	a, err := smn.ParseAlarm(e.Message)
	soon := r.Now().Add(MaxAhead)
	if err == nil && a.Time.After(soon) {
		// Stored, it would make every later alarm look old.
		err = fmt.Errorf("%w: it is of the future", smn.ErrUnreadable)
	}
	if err != nil {
		r.Warn(target, reasonUnreadable, fmt.Sprintf("A message of the alarm topic cannot be read: %v", err))
		return resultUnreadable, err
	}
	metric, err := authorise(target, a)
	if err != nil { // a rule may be newer than the cache: one look at the API server before it counts as unknown
		end, busy := r.rules.begin(ctx)
		if busy != nil {
			return resultUnavailable, fmt.Errorf("rules that are not in the cache: %w", busy)
		}
		defer end()
		fresh, liveErr := r.Book.Live(ctx, target.Namespace, target.Name)
		switch {
		case errors.Is(liveErr, autopilot.ErrGone):
			return resultIgnored, err
		case liveErr != nil:
			return resultUnavailable, fmt.Errorf("look up the rule: %w", liveErr)
		}
		target = fresh
		if metric, err = authorise(target, a); err != nil {
			return resultIgnored, err
		}
	}
	if a.ValueTime.After(soon) {
		a.Value, a.ValueTime = 0, time.Time{} // odd, like any other value that cannot be
	}
	sig := signal(metric, a, e, r.Now())
	return r.store(ctx, target, e, func(in v1alpha1.Intake) (v1alpha1.Intake, result) {
		next, admission := autopilot.Admit(in, sig)
		switch admission {
		case autopilot.Duplicate:
			return next, resultDuplicate
		case autopilot.Stale:
			return next, resultStale
		}
		return next, resultStored
	})
}

// authorise checks that an authentic alarm is about this database: others may publish to a topic too.
func authorise(target *v1alpha1.RdsAutopilot, a smn.Alarm) (v1alpha1.Metric, error) {
	rules := target.Status.Alarms.Rules
	i := slices.IndexFunc(rules, func(rule v1alpha1.Rule) bool { return rule.AlarmID == a.ID })
	if i < 0 {
		return "", errors.New("the alarm rule is not ours")
	}
	metric, err := autopilot.LookupMetric(rules[i].Metric)
	switch {
	case err != nil:
		return "", err
	case a.Namespace != "SYS.RDS" || a.Metric != metric.CloudEye:
		return "", errors.New("the metric is not the rule's")
	case a.Status != string(v1alpha1.StateAlarm) && a.Status != string(v1alpha1.StateOK):
		return "", errors.New("the state is neither alarm nor ok")
	}
	inst := target.Status.Instance
	for _, d := range a.Dimensions {
		if inst != nil && (d.Value == inst.ID || slices.Contains(inst.NodeIDs, d.Value)) {
			return rules[i].Metric, nil
		}
	}
	return "", errors.New("the instance is not ours")
}

func signal(m v1alpha1.Metric, a smn.Alarm, e smn.Envelope, now time.Time) v1alpha1.Signal {
	s := v1alpha1.Signal{
		Metric: m, AlarmID: a.ID, State: v1alpha1.State(a.Status), AlarmTime: metav1.NewMicroTime(a.Time),
		MessageID: e.MessageID, ReceivedTime: metav1.NewMicroTime(now.Truncate(time.Microsecond)),
	}
	if !a.ValueTime.IsZero() {
		t := metav1.NewMicroTime(a.ValueTime)
		s.ValuePercent, s.DatapointTime = strconv.FormatFloat(a.Value, 'f', -1, 64), &t
	}
	return s
}

// store changes the intake on top of what is there, as often as others change the object meanwhile, until time is up.
func (r *Receiver) store(ctx context.Context, target *v1alpha1.RdsAutopilot, e smn.Envelope,
	change func(v1alpha1.Intake) (v1alpha1.Intake, result),
) (result, error) {
	for {
		next, res := change(target.Status.Intake)
		if res == resultDuplicate || res == resultStale {
			return res, nil
		}
		next.SigningCertURL = e.CertURL
		err := r.Book.WriteIntake(ctx, target, next)
		switch {
		case err == nil:
			return res, nil
		case errors.Is(err, autopilot.ErrGone):
			return resultIgnored, err
		case !errors.Is(err, autopilot.ErrConflict), ctx.Err() != nil:
			return resultUnavailable, fmt.Errorf("store: %w", err)
		}
		if target, err = r.Book.Live(ctx, target.Namespace, target.Name); err != nil {
			if errors.Is(err, autopilot.ErrGone) {
				return resultIgnored, err
			}
			return resultUnavailable, fmt.Errorf("store: %w", err)
		}
	}
}
