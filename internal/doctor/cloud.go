// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// clockWarns is the difference of the clocks from which on the user should act.
	clockWarns = time.Minute
	// clockFails leaves a minute of the 5 minutes that the receiver allows a message to be ahead.
	clockFails = 4 * time.Minute
	// rulesEach is the number of alarm rules of a database.
	rulesEach = 3
)

func (x *examination) checkCredentials(context.Context) []Result {
	switch {
	case x.apiErr == nil:
		return ok("The cloud accepted the credentials")
	case errors.Is(x.apiErr, otc.ErrCredentials):
		return result(Failed, "Check user, password, domain and project in OS_* or clouds.yaml. After a few wrong attempts, the cloud locks the account for some time", "%v", x.apiErr)
	case strings.Contains(x.apiErr.Error(), "region"):
		return result(Failed, "Set OS_REGION_NAME to the region of the project, such as eu-de", "%v", x.apiErr)
	}
	return result(Failed, "Check OS_AUTH_URL, and whether this machine reaches it", "%v", x.apiErr)
}

func (x *examination) checkRegion(context.Context) []Result {
	if _, err := app.ConfirmHosts(x.Options.Options, x.api.Region()); err != nil {
		return result(Failed, "Set --smn-confirm-hosts to the host of that region's console", "%v", err)
	}
	return ok("%s, project %s", x.api.Region(), x.api.ProjectID())
}

func (x *examination) checkEndpoints(context.Context) []Result {
	var found []string
	for _, service := range []string{"smn", "ces", "rds"} {
		base, how := x.api.Endpoint(service)
		found = append(found, fmt.Sprintf("%s %s (%s)", service, base, how))
	}
	return ok("%s", strings.Join(found, "; "))
}

func (x *examination) checkClock(ctx context.Context) []Result {
	// The first answers may include the time of a login, so send a new request.
	before := x.Now()
	_, err := x.api.Topics(ctx)
	answer := x.lastAnswer("ListTopics")
	if answer.Date.IsZero() {
		return result(Unseen, "", "The cloud's answer has no Date header (%v)", err)
	}
	ahead := before.Add(x.Now().Sub(before) / 2).Sub(answer.Date).Truncate(time.Second)
	switch {
	case ahead.Abs() >= clockFails:
		return result(Failed, "Set this machine's clock by NTP. The receiver refuses messages more than 5 minutes ahead, and the cloud refuses requests signed with an access key", "Our clock is %s %s", ahead.Abs(), direction(ahead))
	case ahead.Abs() >= clockWarns:
		return result(Warning, "Set this machine's clock by NTP", "Our clock is %s %s", ahead.Abs(), direction(ahead))
	}
	return ok("The clocks agree to %s", max(time.Second, ahead.Abs()))
}

func direction(ahead time.Duration) string {
	if ahead > 0 {
		return "ahead of the cloud's"
	}
	return "behind the cloud's"
}

func (x *examination) checkRightsRDS(ctx context.Context) []Result {
	all, err := x.api.Instances(ctx)
	engine, version := "MySQL", "8.0"
	var policyErr error
	if len(all) > 0 {
		engine, version = all[0].Engine, all[0].Version
		_, policyErr = x.api.StoragePolicy(ctx, all[0].ID)
		if errors.Is(policyErr, otc.ErrNotFound) { // the cloud lacks this call
			policyErr = nil
		}
	}
	codes, flavorsErr := x.api.Flavors(ctx, engine, version)
	errs := []error{err, policyErr, flavorsErr}
	if len(all) > 0 && x.Allowed.Apply == v1alpha1.ApplyCloud { // no instance can have these values, so nothing changes
		const tooSmallGB, noFlavor = 10, "rds.none"
		errs = append(errs, refusal(x.api.Enlarge(ctx, all[0].ID, tooSmallGB)), refusal(x.api.Resize(ctx, all[0].ID, noFlavor)))
	}
	return unless(refused(errs...), "%d instances, %d flavors of %s %s", len(all), len(codes), engine, version)
}

// refusal returns the error of a change for which we lack the right. It returns nil if the cloud rejects the value
// itself.
func refusal(_ string, err error) error {
	e, isCloud := errors.AsType[*otc.Error](err)
	if isCloud && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusConflict) {
		return nil
	}
	return err
}

func (x *examination) checkRightsCES(ctx context.Context) []Result {
	rules, err := x.api.Rules(ctx)
	series, metricsErr := x.api.ListedSeries(ctx, storage().CloudEye)
	_, _, quotaErr := x.api.RuleQuota(ctx)
	of := otc.Series{Metric: storage().CloudEye, Dimension: "rds_cluster_id", Value: "none"}
	for s := range series {
		of = s
	}
	_, dataErr := x.api.Datapoints(ctx, []otc.Series{of}, 1, x.Now().Add(-time.Hour), x.Now())
	return unless(refused(err, metricsErr, quotaErr, dataErr), "%d rules, %d series of %s", len(rules), len(series), storage().CloudEye)
}

func (x *examination) checkRightsSMN(ctx context.Context) []Result {
	topics, err := x.api.Topics(ctx)
	subscriptions, listErr := x.api.Subscriptions(ctx)
	return unless(refused(err, listErr), "%d topics, %d subscriptions", len(topics), len(subscriptions))
}

func (x *examination) checkQuotas(ctx context.Context) []Result {
	used, quota, err := x.api.RuleQuota(ctx)
	topics, topicErr := x.api.Topics(ctx)
	if failed := refused(err, topicErr); failed != nil {
		return failed
	}
	text := fmt.Sprintf("%d of %d alarm rules are in use, enough for %d more databases; %d topics are in use, of 3,000 according to the manual", used, quota, (quota-used)/rulesEach, len(topics))
	if quota-used < rulesEach {
		return result(Failed, askForQuota, "%s", text)
	}
	return ok("%s", text)
}

// checkDatabase reads the instance and its measurements.
func (x *examination) checkDatabase(ctx context.Context) []Result {
	if x.Name == "" {
		return result(Unseen, "", "Doctor was called without a database, so it raises no alarm")
	}
	target, err := x.kube.api.LiveTarget(ctx, x.Namespace, x.Name)
	switch {
	case errors.Is(err, autopilot.ErrGone):
		return result(Failed, "Give the name of an existing Rds: kubectl get rdss -A", "There is no Rds %s/%s", x.Namespace, x.Name)
	case err != nil:
		return result(Failed, "", "%v", err)
	case target.InstanceID == "":
		return result(Failed, "Wait until the operator has created the instance", "The Rds has no status.id yet")
	}
	in, err := x.api.Instance(ctx, target.InstanceID)
	if err != nil {
		return result(Failed, "Check whether project and region are those of the database", "%v", err)
	}
	x.instance = &in
	return unless(refused(x.measure(ctx)), "%s %s %s, %d GB, %s, is %s", in.Engine, in.Version, in.Mode, in.VolumeGB, in.Flavor, in.Status)
}

// checkLeftovers removes the objects of an earlier run that was killed.
func (x *examination) checkLeftovers(ctx context.Context) []Result {
	removed, failed := x.remove(ctx)
	switch {
	case failed != nil:
		failed[0].Text = "Objects of an earlier run cannot be removed: " + failed[0].Text
		return failed
	case len(removed) > 0:
		return ok("Removed objects of an earlier run: %s", strings.Join(removed, ", "))
	}
	return ok("No earlier run has left objects")
}

// checkRemoved removes the objects of this run, even if it was interrupted.
func (x *examination) checkRemoved(ctx context.Context) []Result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	removed, failed := x.remove(ctx)
	if failed != nil {
		failed[0].Do = "Run doctor again: it removes the objects of this run"
	}
	return unless(failed, "Removed %d objects", len(removed))
}

// remove removes all objects with doctor's names for this cluster. It returns their names, or the failed calls.
func (x *examination) remove(ctx context.Context) (removed []string, failed []Result) {
	rules, err := x.api.Rules(ctx)
	errs := []error{err}
	note := func(object string, err error) {
		errs = append(errs, err)
		if err == nil {
			removed = append(removed, object)
		}
	}
	for _, r := range rules {
		if strings.HasPrefix(r.Name, x.prefix()) {
			note("rule "+r.Name, x.api.DeleteRule(ctx, r.ID))
		}
	}
	topics, err := x.api.Topics(ctx)
	errs = append(errs, err)
	for _, t := range topics {
		if strings.HasPrefix(t.Name, x.prefix()) {
			note("topic "+t.Name, x.removeTopic(ctx, t.URN))
		}
	}
	if x.kube != nil {
		names, err := x.kube.removeMailboxes(ctx, x.Namespace)
		removed, errs = append(removed, names...), append(errs, err)
	}
	return removed, refused(errs...)
}

// removeTopic removes the topic's subscriptions and then the topic. The manual says that the cloud does the former by
// itself.
func (x *examination) removeTopic(ctx context.Context, urn string) error {
	subscriptions, err := x.api.TopicSubscriptions(ctx, urn)
	if err != nil && !errors.Is(err, otc.ErrNotFound) {
		return err
	}
	for _, s := range subscriptions {
		if err := x.api.Unsubscribe(ctx, s.URN); err != nil {
			return err
		}
	}
	return x.api.DeleteTopic(ctx, urn)
}
