// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

// Console is the host of confirmation links in the regions eu-de and eu-nl.
const Console = "console.otc.t-systems.com"

// CertHosts returns the hosts of signing certificates: the configured ones, else SMN's own host in the catalogue.
// Before the first login, or if --endpoint replaces SMN's host, it falls back to the host by the region's convention.
func CertHosts(o Options, c interface {
	Region() string
	SMNHost() string
}) smn.Hosts {
	if len(o.CertHosts) > 0 {
		return smn.Fixed(o.CertHosts...)
	}
	return func() []string {
		host, region := c.SMNHost(), c.Region()
		switch {
		case host != "" && o.Endpoints["smn"] == "":
			return []string{host}
		case region == "eu-ch2":
			return []string{"smn.eu-ch2.sc.otc.t-systems.com"}
		}
		return []string{"smn." + region + ".otc.t-systems.com"}
	}
}

// ConfirmHosts returns the hosts of confirmation links: the configured ones, else the console of a known region.
func ConfirmHosts(o Options, region string) ([]string, error) {
	switch {
	case len(o.ConfirmHosts) > 0:
		return o.ConfirmHosts, nil
	case slices.Contains([]string{"eu-de", "eu-nl"}, region):
		return []string{Console}, nil
	}
	return nil, fmt.Errorf("--smn-confirm-hosts is required in region %s: set it to the host of the region's console, which is the host of confirmation links", region)
}

// smnClient returns the client for those hosts. It takes the same proxy as the clients of the cloud and of Kubernetes.
func (o Options) smnClient(hosts smn.Hosts) *http.Client {
	return smn.NewClient(hosts, o.Roots, http.ProxyFromEnvironment)
}

// Probe returns an error if the service cannot connect to a host of certificates or confirmation links. It uses the
// client of the receiver, and any answer is a success.
func Probe(ctx context.Context, o Options, host string) error {
	client := cmp.Or(o.SMNClient, o.smnClient(smn.Fixed(host)))
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, (&url.URL{Scheme: "https", Host: host, Path: "/"}).String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
