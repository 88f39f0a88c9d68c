// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Validate leaves out what is empty of the options that are lists, and reports the first option that is wrong, by the name
// of its flag.
func (o *Options) Validate() error {
	for _, list := range []*[]string{&o.Namespaces, &o.CertHosts, &o.ConfirmHosts, &o.Allowed.Instances} {
		*list = trimmed(*list)
	}
	for _, check := range []struct {
		ok   bool
		text string
	}{
		{o.PublicURL == nil || o.PublicURL.RawQuery == "" && o.PublicURL.Fragment == "" && o.PublicURL.User == nil, "--public-url: a query, a fragment or a user is not possible"},
		{slices.Contains([]v1alpha1.Mode{v1alpha1.ModeAuto, v1alpha1.ModeRecommend, v1alpha1.ModeOff}, o.Mode), "--mode: want Auto, Recommend or Off"},
		{slices.Contains([]v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud}, o.Allowed.Apply), "--allow-apply: want Operator or Cloud"},
		{!slices.ContainsFunc(o.Allowed.Instances, invalidInstance), "--allowed-instances: want NAMESPACE/ID, with * for any"},
		{o.CloudRate > 0, "--cloud-rate: want more than 0"},
		{o.validEndpoints(), "--endpoint: want smn, ces or rds, then = and a URL"},
		{o.MaxMessageAge > 0, "--max-message-age: want more than 0"},
		{o.Sweep > 0, "--sweep-interval: want more than 0"},
		{o.Recheck > 0, "--recheck-interval: want more than 0"},
		{o.MaxFlavorChanges > 0, "--max-flavor-changes: want more than 0"},
		{o.DrainDelay >= 0 && o.DrainDelay <= time.Minute, "--drain-delay: want at most a minute, and not less than 0"},
	} {
		if !check.ok {
			return errors.New(check.text)
		}
	}
	return nil
}

// ParsePublicURL reads the URL that SMN posts alarms to.
func ParsePublicURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if !isWeb(u, err) {
		return nil, errors.New("want an http or https URL")
	}
	return u, nil
}

// trimmed leaves out spaces and what is empty.
func trimmed(values []string) (kept []string) {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			kept = append(kept, v)
		}
	}
	return kept
}

func (o *Options) validEndpoints() bool {
	for service, raw := range o.Endpoints {
		if !slices.Contains([]string{"smn", "ces", "rds"}, service) || !isWeb(url.Parse(raw)) {
			return false
		}
	}
	return true
}

// isWeb reports whether what was parsed is an http or https URL.
func isWeb(u *url.URL, err error) bool {
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

func invalidInstance(entry string) bool { return !autopilot.ValidAllowedInstance(entry) }
