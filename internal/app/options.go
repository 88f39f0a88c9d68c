// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Options configure the service. All are required unless their comment gives a meaning to the zero value.
type Options struct {
	PublicURL *url.URL // SMN posts alarms to it; its path is the receiver's
	Mode      v1alpha1.Mode
	Allowed   autopilot.Allowed // which databases may use spec.apply: Cloud
	// Namespaces are the watched ones; none means all.
	Namespaces []string

	// CertHosts are the exact hosts of signing certificates; none means SMN's own in the cloud's catalogue.
	CertHosts []string
	// ConfirmHosts are the exact hosts of confirmation links; none means the console of a known region.
	ConfirmHosts []string
	Roots        *x509.CertPool // for those hosts; nil means the system's
	// SMNClient replaces the clients that fetch certificates and confirm, which limit hosts, size and time. Only tests set
	// it.
	SMNClient     *http.Client
	MaxMessageAge time.Duration

	Sweep            time.Duration  // time between two sweeps
	Recheck          time.Duration  // time to the next check while an instance is busy or a change is pending
	MaxFlavorChanges int            // changes in progress at a time in the cluster
	Chance           func() float64 // returns 0 to 1, for the sweep's jitter; nil is random

	LeaderElect    bool
	LeaseNamespace string            // empty means the pod's own
	Labels         map[string]string // of the objects that the service creates in Kubernetes
	System         string            // namespace whose uid is the cluster's id
	DrainDelay     time.Duration     // how long the receiver accepts messages after the context has ended

	CloudRate float64           // requests per second to each cloud service
	Endpoints map[string]string // URL by service, in place of the catalogue's
	// Transport sends the requests to the cloud's API; nil is the default one.
	Transport http.RoundTripper
	Env       func(string) string // OS_* credentials, and POD_NAME if the host name differs from the pod's name

	StatusPage bool // serve the status page at / of the admin address

	Version string // of this build
	Log     *zap.Logger
	Now     func() time.Time
}

// ownNamespace returns the namespace of the service: that of its lease. Outside of a pod and without leader election it
// is "default".
func (o Options) ownNamespace() (string, error) {
	own, err := k8s.LeaseNamespace(o.LeaseNamespace)
	if err != nil && !o.LeaderElect {
		return metav1.NamespaceDefault, nil
	}
	return own, err
}

// Defaults returns the options that have a default.
func Defaults() Options {
	return Options{
		Mode: v1alpha1.ModeAuto, Allowed: autopilot.Allowed{Apply: v1alpha1.ApplyOperator}, MaxMessageAge: time.Hour,
		Sweep: 5 * time.Minute, Recheck: 30 * time.Second, MaxFlavorChanges: 3, LeaderElect: true,
		System: "kube-system", StatusPage: true, DrainDelay: 5 * time.Second, CloudRate: 5, Now: time.Now,
	}
}
