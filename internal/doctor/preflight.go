// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
)

// What to do, where several steps say the same.
const (
	needsRights = "Install the chart's RBAC (deploy/rbac.yaml), or run doctor in the service's pod: kubectl exec"
	tryAgain    = "Try again later. If it stays, check the endpoint of the service and the network"
)

// kubeAdvice returns what to do about an error of the Kubernetes API. Its text names a missing right.
func kubeAdvice(err error) string {
	switch {
	case strings.Contains(err.Error(), "CRD "):
		return "Install the CRDs: kubectl apply -f deploy/crds"
	case apierrors.IsForbidden(err):
		return needsRights
	case errors.Is(err, autopilot.ErrGone):
		return "Somebody has deleted it, perhaps another run of doctor. Run doctor again, once at a time"
	}
	return "Check --kubeconfig and --context, and what the message names. If it names a proxy, add the address to NO_PROXY"
}

func (d *doctor) connectKube(ctx context.Context) (l Line) {
	var err error
	if d.namespace, err = k8s.LeaseNamespace(d.LeaseNamespace); err != nil {
		return failed("Give --lease-namespace, the namespace of the service", "The service's namespace is not known: %v", err)
	}
	if d.kube, err = app.ConnectKube(ctx, d.Kube, d.Options.Options); err != nil {
		return failed(kubeAdvice(err), "%v", err)
	}
	return ok("The API server answers and serves RdsAutopilots")
}

func (d *doctor) logIn(ctx context.Context) (l Line) {
	var err error
	d.cloud, err = app.ConnectCloud(ctx, d.Options.Options, nil, false)
	switch {
	case err == nil:
		return ok("The cloud accepts the credentials: region %s, project %s", d.cloud.Region(), d.cloud.ProjectID())
	case errors.Is(err, otc.ErrCredentials):
		return failed("Check user, password, domain and project in OS_* or clouds.yaml. After a few wrong attempts, the cloud locks the account for some time", "%v", err)
	case errors.Is(err, otc.ErrUnavailable):
		return failed("Check OS_AUTH_URL, and whether the pod reaches it (egress, proxy)", "%v", err)
	case strings.Contains(err.Error(), "region"):
		return failed("Set OS_REGION_NAME to the region of the project, such as eu-de", "%v", err)
	}
	return failed("Correct the setting that the message names, in OS_* or clouds.yaml", "%v", err)
}

func (d *doctor) readLists(ctx context.Context) Line {
	var topics []otc.Topic
	var err error
	for _, read := range []func(){
		func() { d.instances, err = d.cloud.ListInstances(ctx) },
		func() { d.rules, err = d.cloud.ListRules(ctx) },
		func() { topics, err = d.cloud.Topics(ctx) },
		func() { _, err = d.cloud.ListSeries(ctx) },
		func() { _, err = d.cloud.ListFlavors(ctx, "MySQL", "8.0") },
	} {
		if read(); err != nil {
			return failed(cmp.Or(grant(err.Error()), tryAgain), "%v", err)
		}
	}
	return ok("Readable: %d instances, %d rules, %d topics, the metrics and flavors", len(d.instances), len(d.rules), len(topics))
}

// grant returns which right of the cloud a text lacks that names a refused operation, as the texts of otc.Error do.
func grant(text string) string {
	for operation, right := range otc.Rights() {
		if strings.Contains(text, " "+operation+": 403") {
			return fmt.Sprintf("Give the service's user the right %s in the cloud. SECURITY.md lists all", right)
		}
	}
	return ""
}

func (d *doctor) checkQuota(ctx context.Context) Line {
	used, quota, err := d.cloud.RuleQuota(ctx)
	if err != nil {
		return failed(cmp.Or(grant(err.Error()), tryAgain), "%v", err)
	}
	each := len(autopilot.MetricTable())
	if quota-used < each {
		return failed("Ask for a higher quota, or delete alarm rules that nobody needs",
			"The quota of alarm rules is used up: %d of %d, and a database needs %d", used, quota, each)
	}
	return ok("%d of %d alarm rules are in use: enough for %d more databases", used, quota, (quota-used)/each)
}

func (d *doctor) checkHosts(ctx context.Context) Line {
	confirm, err := app.ConfirmHosts(d.Options.Options, d.cloud.Region())
	if err != nil {
		return failed("Set --smn-confirm-hosts to the host of that region's console", "%v", err)
	}
	certs := app.CertHosts(d.Options.Options, d.cloud)()
	for flag, hosts := range map[string][]string{"--smn-cert-hosts": certs, "--smn-confirm-hosts": confirm} {
		for _, host := range hosts {
			if err := app.Probe(ctx, d.Options.Options, host); err != nil {
				return failed("Allow the pod to connect to "+host+" (NetworkPolicy, proxy, firewall), or correct "+flag+" and --smn-ca-file",
					"The host of %s is not reachable: %v", flag, err)
			}
		}
	}
	return ok("Reachable: %s for certificates, %s for confirmation links", strings.Join(certs, ", "), strings.Join(confirm, ", "))
}

// checkURL sends a GET to the public URL. Our receiver answers 405, because it accepts only POST. A failure may be due
// to the way from here alone, so it is a note, which becomes the explanation if no message arrives.
func (d *doctor) checkURL(ctx context.Context) Line {
	d.url = Line{State: Note}
	resp, err := d.Web.Do((&http.Request{Method: http.MethodGet, URL: d.PublicURL, Header: http.Header{}}).WithContext(ctx))
	if err == nil {
		_ = resp.Body.Close()
	}
	_, isTLS := errors.AsType[*tls.CertificateVerificationError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isTLS:
		d.url.Text, d.url.Do = "The TLS certificate is not valid: "+err.Error(), "Install a certificate of a public CA for exactly this host"
	case isDNS:
		d.url.Text, d.url.Do = "DNS does not know the host: "+err.Error(), "Create a public DNS record for the host, or correct --public-url"
	case err != nil:
		d.url.Text = "Nothing answers at the public URL from here: " + err.Error()
		d.url.Do = "Check Ingress, load balancer and firewall: SMN comes from the internet, which may be open although this way is not"
	case resp.StatusCode == http.StatusMethodNotAllowed:
		d.url = ok("The receiver answers at %s", d.PublicURL.Redacted())
	default:
		d.url.Text = fmt.Sprintf("Another server answers at %s: %d, and our receiver 405", d.PublicURL.Redacted(), resp.StatusCode)
		d.url.Do = "Compare the path of --public-url with that of the Ingress, and its backend with the webhook's port. SMN follows no redirect"
	}
	return d.url
}

func (d *doctor) chooseInstance(context.Context) Line {
	by := ""
	for _, in := range d.instances {
		if in.ID != d.Instance && (d.Instance != "" || in.Status != autopilot.StatusActive || in.Mode == "replica") {
			continue
		}
		manager, claimed := alarms.Manager(d.rules, append([]string{in.ID}, in.NodeIDs...))
		if !claimed {
			d.Instance = in.ID
			return ok("%s (%s %s, %d GB) is managed by nobody", in.ID, in.Engine, in.Version, in.VolumeGB)
		}
		by = manager.Namespace + "/" + manager.Name
	}
	if by != "" {
		return failed("Give the id of another one as --instance. Or create a small one for this test, and delete it afterwards",
			"All instances are managed already, or the one of --instance. The last one by %s", by)
	}
	return failed("Check region, project and --instance, or create a small instance",
		"The project has %d instances, but no ACTIVE one, or none with the id %q", len(d.instances), d.Instance)
}
