// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func (r *Receiver) storeAlarm(ctx context.Context, m *message) (res result, err error) {
	sig, read := signal(m, r.Now()), m.target
	err = autopilot.RetryConflict(ctx, func() (err error) {
		if read == nil {
			if read, err = r.Store.LiveAutopilot(ctx, m.target.Namespace, m.target.Name); err != nil {
				return err
			}
		}
		var next v1alpha1.Intake
		if next, res = addSignal(read.Status.Intake, sig); res != resultStored {
			return nil
		}
		next.SigningCertURL = m.envelope.CertURL
		err = r.Store.WriteIntake(ctx, read, next)
		read = nil
		return err
	})
	switch {
	case errors.Is(err, autopilot.ErrGone):
		return resultIgnored, err
	case err != nil:
		return resultUnavailable, fmt.Errorf("store: %w", err)
	}
	return res, nil
}

// addSignal returns the intake with the signal and resultStored, unless the intake already has a newer one for its metric.
// It compares alarm times, because SMN may deliver late, twice or out of order. It does not modify the intake that is
// passed.
func addSignal(in v1alpha1.Intake, sig v1alpha1.Signal) (v1alpha1.Intake, result) {
	out := *in.DeepCopy()
	stored := autopilot.SignalOf(out, sig.Metric)
	switch {
	case stored == nil:
		out.Signals = append(out.Signals, sig)
	case stored.MessageID == sig.MessageID:
		return out, resultDuplicate
	case !sig.AlarmTime.After(stored.AlarmTime.Time):
		return out, resultStale
	default:
		*stored = sig
	}
	return out, resultStored
}

func signal(m *message, now time.Time) v1alpha1.Signal {
	a := m.alarm
	s := v1alpha1.Signal{
		Metric: m.metric, AlarmID: a.ID, State: v1alpha1.State(a.Status), AlarmTime: metav1.NewMicroTime(a.Time),
		MessageID: m.envelope.MessageID, ReceivedTime: metav1.NewMicroTime(now.Truncate(time.Microsecond)),
	}
	if !a.ValueTime.IsZero() {
		t := metav1.NewMicroTime(a.ValueTime)
		s.ValuePercent, s.DatapointTime = strconv.FormatFloat(a.Value, 'f', -1, 64), &t
	}
	return s
}

// confirm calls the link of an authentic confirmation of our topic and reports whether it was answered with success.
// The leader reads from the list of subscriptions whether the subscription is confirmed.
func (r *Receiver) confirm(ctx context.Context, m *message) (result, error) {
	ctxGet, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctxGet, http.MethodGet, m.link, nil)
	if err != nil {
		return resultIgnored, errors.New("the confirmation link is not a URL")
	}
	resp, err := r.Confirm.Do(req)
	if err != nil {
		return resultUnavailable, fmt.Errorf("call the confirmation link: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused
	status := fmt.Errorf("call the confirmation link: status %d", resp.StatusCode)
	switch {
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusTooManyRequests:
		return resultUnavailable, status
	case resp.StatusCode/100 == 2:
		return resultConfirmed, nil
	}
	// Another call would get the same answer.
	r.Warn(reasonConfirm,
		fmt.Sprintf("The subscription of the alarm topic was not confirmed: its link returned status %d", resp.StatusCode))
	return resultUnconfirmed, status
}

// confirmLink rebuilds a confirmation link from checked parts. Its host must be configured, and its topic, if any,
// must be the signed one. It accepts any path: SMN has signed the link, and no real link of this cloud is known.
func confirmLink(raw string, hosts []string, topic string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", errors.New("its link is not a URL")
	case u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return "", errors.New("its link is not a plain https URL")
	case !slices.Contains(hosts, smn.Host(u.Host)):
		return "", fmt.Errorf("the link's host %q is not in --smn-confirm-hosts", u.Host)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", errors.New("the link's query cannot be read")
	}
	if topics := query["topic_urn"]; len(topics) > 1 || len(topics) == 1 && topics[0] != topic {
		return "", errors.New("the link is for another topic")
	}
	return (&url.URL{Scheme: "https", Host: u.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: query.Encode()}).String(), nil
}

func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
