// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Validate trims the entries of the lists in o, drops empty ones, and brings hosts into the form of URLs. It returns an
// error for the first wrong option, with the name of its flag.
func (o *Options) Validate() error {
	for _, list := range []*[]string{&o.Namespaces, &o.CertHosts, &o.ConfirmHosts, &o.Allowed.Instances} {
		var kept []string
		for _, entry := range *list {
			if entry = strings.TrimSpace(entry); entry != "" {
				kept = append(kept, entry)
			}
		}
		*list = kept
	}
	for flag, hosts := range map[string][]string{"--smn-cert-hosts": o.CertHosts, "--smn-confirm-hosts": o.ConfirmHosts} {
		for i := range hosts {
			var err error
			if hosts[i], err = smn.ParseHost(hosts[i]); err != nil {
				return fmt.Errorf("%s: %w", flag, err)
			}
		}
	}
	for _, check := range []struct {
		ok   bool
		text string
	}{
		{validPublicURL(o.PublicURL), "--public-url: want a URL without query, fragment and user"},
		{slices.Contains([]v1alpha1.Mode{v1alpha1.ModeAuto, v1alpha1.ModeRecommend, v1alpha1.ModeOff}, o.Mode),
			"--mode: want Auto, Recommend or Off"},
		{slices.Contains([]v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud}, o.Allowed.Apply),
			"--allow-apply: want Operator or Cloud"},
		{!slices.ContainsFunc(o.Allowed.Instances, func(entry string) bool { return !autopilot.ValidAllowedInstance(entry) }),
			"--allowed-instances: want NAMESPACE/ID, with * for any"},
		{!o.Allowed.LacksInstances(), "--allowed-instances is required with --allow-apply=Cloud: list NAMESPACE/ID, or */* for every instance of the project"},
		{o.CloudRate > 0, "--cloud-rate: want more than 0"},
		{o.validEndpoints(), "--endpoint: want smn, ces or rds, then = and a URL"},
		{o.MaxMessageAge > 0, "--max-message-age: want more than 0"},
		{o.Sweep > 0, "--sweep-interval: want more than 0"},
		{o.Recheck > 0, "--recheck-interval: want more than 0"},
		{o.MaxFlavorChanges > 0, "--max-flavor-changes: want more than 0"},
		{o.DrainDelay >= 0 && o.DrainDelay <= time.Minute, "--drain-delay: want 0 to 1 minute"},
	} {
		if !check.ok {
			return errors.New(check.text)
		}
	}
	return nil
}

// validPublicURL reports whether u is nil, for a command without the flag, or only has scheme, host and path.
func validPublicURL(u *url.URL) bool {
	return u == nil || u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

// ParsePublicURL parses the URL that SMN posts alarms to.
func ParsePublicURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if !isWeb(u, err) {
		return nil, errors.New("want an http or https URL")
	}
	return u, nil
}

func (o *Options) validEndpoints() bool {
	for service, raw := range o.Endpoints {
		if !slices.Contains([]string{"smn", "ces", "rds"}, service) || !isWeb(url.Parse(raw)) {
			return false
		}
	}
	return true
}

func isWeb(u *url.URL, err error) bool {
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}
