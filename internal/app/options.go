// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Options are what the service needs to know. All are required unless their comment says what the zero value means.
type Options struct {
	PublicURL *url.URL // that SMN posts alarms to; its path is the receiver's
	Mode      v1alpha1.Mode
	Allowed   autopilot.Allowed // of spec.apply: Cloud
	// Namespaces that are watched; none means all.
	Namespaces []string

	// CertHosts are the exact hosts of signing certificates; none means SMN's own in the cloud's catalogue.
	CertHosts []string
	// ConfirmHosts are the exact hosts of confirmation links; none means the console of a known region.
	ConfirmHosts []string
	Roots        *x509.CertPool // that those hosts are trusted by; nil means the system's
	// SMNClient fetches certificates and confirms in place of our own clients, which bound hosts, size and time; nil
	// outside of tests.
	SMNClient     *http.Client
	MaxMessageAge time.Duration

	Sweep            time.Duration  // between two sweeps
	Recheck          time.Duration  // the next look while an instance is busy or a change is pending
	MaxFlavorChanges int            // at a time in the cluster
	Chance           func() float64 // 0 to 1, for the sweep's jitter; nil is random

	LeaderElect    bool
	LeaseNamespace string        // empty means the pod's own
	DrainDelay     time.Duration // how long the receiver goes on after the context has ended

	CloudRate float64           // requests per second to each cloud service
	Endpoints map[string]string // of cloud services, in place of the catalogue's
	// Transport makes the calls of the cloud's API; nil is the default one.
	Transport http.RoundTripper
	// Observe gets every answer of the cloud; nil is nobody.
	Observe func(otc.Answer)
	Env     func(string) string // OS_* credentials, and POD_NAME where the host's name is not the pod's

	StatusPage bool // at / of the address that is not public

	Version string // of this build
	Log     *zap.Logger
	Now     func() time.Time
}

// Defaults are the options that have a default.
func Defaults() Options {
	return Options{
		Mode: v1alpha1.ModeAuto, Allowed: autopilot.Allowed{Apply: v1alpha1.ApplyOperator}, MaxMessageAge: time.Hour, Sweep: 5 * time.Minute, Recheck: 30 * time.Second, MaxFlavorChanges: 3,
		LeaderElect: true, StatusPage: true, DrainDelay: 5 * time.Second, CloudRate: 5, Now: time.Now,
	}
}
