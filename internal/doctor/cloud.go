package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Bounds of what is well.
const (
	clockWell  = time.Minute     // a message may be 5 minutes ahead
	clockFails = 4 * time.Minute // of these
	rulesEach  = 3               // for a database
)

const seePolicy = "Give the user the rights of deploy/examples/policy.json"

func (x *examination) checkCredentials(context.Context) []Result {
	switch {
	case x.apiErr == nil:
		return ok("The cloud accepted them")
	case errors.Is(x.apiErr, otc.ErrCredentials):
		return result(Failed, "Check user, password, domain and project in OS_* or clouds.yaml; after a few wrong tries the account is locked for a while", "%v", x.apiErr)
	case strings.Contains(x.apiErr.Error(), "region"):
		return result(Failed, "Set OS_REGION_NAME to the region of the project, such as eu-de", "%v", x.apiErr)
	}
	return result(Failed, "Check OS_AUTH_URL, and that this machine reaches it", "%v", x.apiErr)
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
	// Asked anew: the first answers may have waited for a login.
	before := x.Now()
	_, err := x.api.Topics(ctx)
	answer := x.lastAnswer("ListTopics")
	if answer.Date.IsZero() {
		return result(Unseen, "", "The cloud does not say what time it is (%v)", err)
	}
	ahead := before.Add(x.Now().Sub(before) / 2).Sub(answer.Date).Truncate(time.Second)
	switch {
	case ahead.Abs() >= clockFails:
		return result(Failed, "Set this machine's clock by NTP: messages more than 5 minutes ahead are refused, and requests that are signed with an access key, too", "Our clock is %s %s", ahead.Abs(), direction(ahead))
	case ahead.Abs() >= clockWell:
		return result(Warning, "Set this machine's clock by NTP", "Our clock is %s %s", ahead.Abs(), direction(ahead))
	}
	return ok("They agree to %s", max(time.Second, ahead.Abs()))
}

func direction(ahead time.Duration) string {
	if ahead > 0 {
		return "ahead of the cloud's"
	}
	return "behind the cloud's"
}

// ask makes one call, and says in one line which right it lacks.
func ask(refused *[]string, operation string, err error) {
	if err == nil {
		return
	}
	right := otc.Rights()[operation]
	if e, isCloud := errors.AsType[*otc.Error](err); isCloud && (e.Status == 403 || e.Status == 401) && right != "" {
		*refused = append(*refused, fmt.Sprintf("%v: it needs %s", err, right))
		return
	}
	*refused = append(*refused, err.Error())
}

func rights(refused []string, well string) []Result {
	if len(refused) > 0 {
		return result(Failed, seePolicy, "%s", strings.Join(refused, "; "))
	}
	return ok("%s", well)
}

func (x *examination) checkRightsRDS(ctx context.Context) []Result {
	var refused []string
	all, err := x.api.Instances(ctx)
	ask(&refused, "ListInstances", err)
	engine, version := "MySQL", "8.0"
	if len(all) > 0 {
		engine, version = all[0].Engine, all[0].Version
		_, err = x.api.StoragePolicy(ctx, all[0].ID)
		if !errors.Is(err, otc.ErrNotFound) { // the cloud has no such call
			ask(&refused, "GetStoragePolicy", err)
		}
	}
	if len(all) > 0 && x.Allowed.Apply == v1alpha1.ApplyCloud {
		x.tryChanges(ctx, all[0].ID, &refused)
	}
	codes, err := x.api.Flavors(ctx, engine, version)
	ask(&refused, "ListFlavors", err)
	return rights(refused, fmt.Sprintf("%d instances, %d flavors of %s %s", len(all), len(codes), engine, version))
}

// tryChanges asks for changes that no instance can have, so that the cloud's answer is about the right and nothing is changed.
func (x *examination) tryChanges(ctx context.Context, instanceID string, refused *[]string) {
	const tooSmallGB, noFlavor = 10, "rds.none"
	_, enlarge := x.api.Enlarge(ctx, instanceID, tooSmallGB)
	_, resize := x.api.Resize(ctx, instanceID, noFlavor)
	for _, tried := range []struct {
		operation string
		err       error
	}{{"EnlargeVolume", enlarge}, {"ResizeFlavor", resize}} {
		if e, isCloud := errors.AsType[*otc.Error](tried.err); isCloud && (e.Status == 400 || e.Status == 404 || e.Status == 409) {
			continue // understood, and impossible
		}
		ask(refused, tried.operation, tried.err)
	}
}

func (x *examination) checkRightsCES(ctx context.Context) []Result {
	var refused []string
	rules, err := x.api.Rules(ctx)
	ask(&refused, "ListRules", err)
	series, err := x.api.ListedSeries(ctx, storage().CloudEye)
	ask(&refused, "ListMetrics", err)
	_, _, err = x.api.RuleQuota(ctx)
	ask(&refused, "GetQuotas", err)
	of := otc.Series{Metric: storage().CloudEye, Dimension: "rds_cluster_id", Value: "none"}
	for s := range series {
		of = s
	}
	_, err = x.api.Datapoints(ctx, []otc.Series{of}, 1, x.Now().Add(-time.Hour), x.Now())
	ask(&refused, "QueryMetricData", err)
	return rights(refused, fmt.Sprintf("%d rules, %d series of %s", len(rules), len(series), storage().CloudEye))
}

func (x *examination) checkRightsSMN(ctx context.Context) []Result {
	var refused []string
	topics, err := x.api.Topics(ctx)
	ask(&refused, "ListTopics", err)
	subscriptions, err := x.api.Subscriptions(ctx)
	ask(&refused, "ListSubscriptions", err)
	return rights(refused, fmt.Sprintf("%d topics, %d subscriptions", len(topics), len(subscriptions)))
}

func (x *examination) checkQuotas(ctx context.Context) []Result {
	used, quota, err := x.api.RuleQuota(ctx)
	if err != nil {
		return result(Failed, seePolicy, "%v", err)
	}
	room := (quota - used) / rulesEach
	if room < 1 {
		return result(Failed, "Delete alarm rules that nobody needs, or ask the provider for a higher quota: a database needs 3", "%d of %d alarm rules are used", used, quota)
	}
	return ok("%d of %d alarm rules are used: room for %d databases", used, quota, room)
}

// checkDatabase also reads its measurements.
func (x *examination) checkDatabase(ctx context.Context) []Result {
	if x.Name == "" {
		return result(Unseen, "", "No database was named: no alarm is raised")
	}
	target, err := x.kube.target(ctx, x.Namespace, x.Name)
	switch {
	case errors.Is(err, autopilot.ErrGone):
		return result(Failed, "Name an Rds that exists: kubectl get rdss -A", "There is no Rds %s/%s", x.Namespace, x.Name)
	case err != nil:
		return result(Failed, "", "%v", err)
	case target.InstanceID == "":
		return result(Failed, "Wait until the operator has made the instance", "The Rds has no status.id yet")
	}
	in, err := x.api.Instance(ctx, target.InstanceID)
	if err != nil {
		return result(Failed, "Check that project and region are those of the database", "%v", err)
	}
	x.instance = &in
	if err := x.measure(ctx); err != nil {
		return result(Failed, seePolicy, "%v", err)
	}
	return ok("%s %s %s, %d GB, %s, is %s", in.Engine, in.Version, in.Mode, in.VolumeGB, in.Flavor, in.Status)
}

// checkLeftovers removes what a run has left that was killed.
func (x *examination) checkLeftovers(ctx context.Context) []Result {
	removed, err := x.remove(ctx)
	switch {
	case err != nil:
		return result(Failed, "Give the rights to remove topics and rules: "+seePolicy, "What an earlier run left cannot be removed: %v", err)
	case len(removed) > 0:
		return ok("Removed what an earlier run left: %s", strings.Join(removed, ", "))
	}
	return ok("Nothing")
}

// checkRemoved removes what this run has made, also where it was interrupted.
func (x *examination) checkRemoved(ctx context.Context) []Result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	removed, err := x.remove(ctx)
	if x.mailbox != nil {
		err = errors.Join(err, x.mailbox.close(ctx))
	}
	if err != nil {
		return result(Failed, "Run doctor again: it removes what this run has left", "%v", err)
	}
	return ok("%d things", len(removed))
}

// remove removes all that is named as what doctor makes in this cluster's name, and says what it was.
func (x *examination) remove(ctx context.Context) (removed []string, err error) {
	note := func(what string, failure error) {
		if err = errors.Join(err, failure); failure == nil {
			removed = append(removed, what)
		}
	}
	rules, listErr := x.api.Rules(ctx)
	for _, r := range rules {
		if strings.HasPrefix(r.Name, x.prefix()) {
			note("rule "+r.Name, x.api.DeleteRule(ctx, r.ID))
		}
	}
	topics, topicErr := x.api.Topics(ctx)
	for _, t := range topics {
		if strings.HasPrefix(t.Name, x.prefix()) {
			note("topic "+t.Name, x.removeTopic(ctx, t.URN))
		}
	}
	err = errors.Join(err, listErr, topicErr)
	if x.kube != nil {
		names, kubeErr := x.kube.removeMailboxes(ctx, x.Namespace)
		removed, err = append(removed, names...), errors.Join(err, kubeErr)
	}
	return removed, err
}

// removeTopic removes the subscriptions first: the cloud does so too, by its manual.
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

// measurements are the newest of the database's storage, as Cloud Eye has them.
type measurements struct {
	dimension, value     string // those with data, or the instance's own
	ofInstance, ofNode   bool   // which of both are listed
	util, used, total    otc.Datapoint
	read                 time.Time
	resizeKnown, resized bool
}

func storage() autopilot.MetricRow { return autopilot.MetricTable()[0] }

// measure reads three hours: values may be later than the manual says.
func (x *examination) measure(ctx context.Context) error {
	in := x.instance
	ofInstance, err1 := alarms.InstanceDimension(in.Engine)
	ofNode, err2 := alarms.NodeDimension(in.Engine)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	listed, err := x.api.ListedSeries(ctx, storage().CloudEye)
	if err != nil {
		return err
	}
	x.data.ofInstance = listed[otc.Series{Metric: storage().CloudEye, Dimension: ofInstance, Value: in.ID}]
	x.data.dimension, x.data.value = ofInstance, in.ID
	for _, n := range in.Nodes {
		if listed[otc.Series{Metric: storage().CloudEye, Dimension: ofNode, Value: n.ID}] {
			x.data.ofNode = true
			if !x.data.ofInstance && (n.Role == "master" || x.data.value == in.ID) {
				x.data.dimension, x.data.value = ofNode, n.ID
			}
		}
	}
	var wanted []otc.Series
	for _, metric := range []string{storage().CloudEye, storage().UsedGB, storage().TotalGB} {
		wanted = append(wanted, otc.Series{Metric: metric, Dimension: x.data.dimension, Value: x.data.value})
	}
	now := x.Now()
	x.data.read = now
	points, err := x.api.Datapoints(ctx, wanted, 1, now.Add(-3*time.Hour), now.Add(3*time.Hour))
	if err != nil {
		return err
	}
	for i, into := range []*otc.Datapoint{&x.data.util, &x.data.used, &x.data.total} {
		if p := points[wanted[i]]; len(p) > 0 {
			*into = p[len(p)-1]
		}
	}
	_, err = x.api.ResizeTargets(ctx, in.ID)
	x.data.resizeKnown, x.data.resized = err == nil || errors.Is(err, otc.ErrNotFound), err == nil
	return nil
}

// percent is how full the storage is by its used space; false where that is not known.
func (m measurements) percent() (float64, bool) {
	if m.used.Time.IsZero() || m.total.Average <= 0 {
		return 0, false
	}
	return 100 * m.used.Average / m.total.Average, true
}
