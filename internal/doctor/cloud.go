// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
	case errors.Is(x.apiErr, otc.ErrUnavailable):
		return result(Failed, "Check OS_AUTH_URL, and whether this machine reaches it", "%v", x.apiErr)
	case strings.Contains(x.apiErr.Error(), "region"):
		return result(Failed, "Set OS_REGION_NAME to the region of the project, such as eu-de", "%v", x.apiErr)
	}
	return result(Failed, "Correct the setting that the message names, in OS_* or clouds.yaml", "%v", x.apiErr)
}

func (x *examination) checkRegion(context.Context) []Result {
	if _, err := app.ConfirmHosts(x.Options.Options, x.api.Region()); err != nil {
		return result(Failed, "Set --smn-confirm-hosts to the host of that region's console", "%v", err)
	}
	return ok("%s, project %s", x.api.Region(), x.api.ProjectID())
}

func (x *examination) checkEndpoints(context.Context) []Result {
	var found []string
	confirm, _ := app.ConfirmHosts(x.Options.Options, x.api.Region()) // checkRegion reports the error
	hosts := slices.Concat(confirm, app.CertHosts(x.Options.Options, x.api)())
	for _, service := range []string{"smn", "ces", "rds"} {
		base, how := x.api.Endpoint(service)
		found = append(found, fmt.Sprintf("%s %s (%s)", service, base, how))
		if u, err := url.Parse(base); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	slices.Sort(hosts)
	return append(ok("%s", strings.Join(found, "; ")), ok("Requests go to %s", app.Routes(slices.Compact(hosts)))...)
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
	return unless(refused(err, policyErr, flavorsErr), "%d instances, %d flavors of %s %s", len(all), len(codes), engine,
		version)
}

// Values that the cloud must refuse however it reads them. Its manual can be read as if a size were an increment, and
// then any positive size would enlarge the volume.
const (
	impossibleGB     = -1
	impossibleFlavor = "rds.none"
)

// checkRightsChange requests impossible changes of the named instance, and of no other. The cloud's answer shows
// whether the user has the rights.
func (x *examination) checkRightsChange(ctx context.Context) []Result {
	if x.Allowed.Apply != v1alpha1.ApplyCloud {
		return ok("Not needed, because --allow-apply is Operator")
	}
	job, enlargeErr := x.api.Enlarge(ctx, x.instance.ID, impossibleGB)
	if enlargeErr == nil {
		return x.accepted(job, "the size %d GB", impossibleGB)
	}
	job, resizeErr := x.api.Resize(ctx, x.instance.ID, impossibleFlavor)
	if resizeErr == nil {
		return x.accepted(job, "the flavor %s", impossibleFlavor)
	}
	return unless(refused(refusal(enlargeErr), refusal(resizeErr)), "The cloud refuses impossible values, not the user")
}

// accepted returns the result of an impossible change that the cloud has not refused.
func (x *examination) accepted(job, format string, args ...any) []Result {
	return result(Failed, "Check the job, the size and the flavor of this instance in the console, and report it as a bug",
		"The cloud accepted "+format+" for the instance %s: job %s", append(args, x.instance.ID, job)...)
}

// refusal returns the error of a change for which we lack the right. It returns nil if the cloud rejects the value
// itself.
func refusal(err error) error {
	e, isCloud := errors.AsType[*otc.Error](err)
	if isCloud && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound ||
		e.Status == http.StatusConflict) {
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
	return unless(refused(err, metricsErr, quotaErr, dataErr), "%d rules, %d series of %s", len(rules), len(series),
		storage().CloudEye)
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
		return result(Failed, "Give the name of an existing Rds: kubectl get rdss -A", "There is no Rds %s/%s", x.Namespace,
			x.Name)
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
	return unless(refused(x.measure(ctx)), "%s %s %s, %d GB, %s, is %s", in.Engine, in.Version, in.Mode, in.VolumeGB,
		in.Flavor, in.Status)
}
