// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
)

func logIn(ctx context.Context, t *transport, acct account, endpoints map[string]string) (*login, error) {
	p, err := authenticate(ctx, t, acct)
	if err != nil {
		return nil, err
	}
	l := &login{account: acct, projectID: p.ProjectID, region: cmp.Or(acct.region, p.RegionID)}
	if !acct.byKey() {
		l.token = p.TokenID
	}
	switch {
	case l.projectID == "":
		return nil, errors.New("cloud: the token has no project: set OS_PROJECT_NAME or OS_PROJECT_ID")
	case l.region == "":
		return nil, errors.New("cloud: the region is unknown: set OS_REGION_NAME")
	}
	l.bases, err = findServices(p, l.projectID, l.region, endpoints)
	return l, err
}

// authenticate logs in once. The returned client holds token, project and catalogue. It is not used for other requests.
func authenticate(ctx context.Context, t *transport, acct account) (*golangsdk.ProviderClient, error) {
	p, err := openstack.NewClient(acct.authURL)
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	t.bind(call{t: t, ctx: ctx, op: opLogin}, p)
	if acct.byKey() {
		err = openstack.Authenticate(p, golangsdk.AKSKAuthOptions{
			IdentityEndpoint: acct.authURL, Region: acct.region, ProjectId: acct.projectID, ProjectName: acct.projectName,
			AccessKey: acct.accessKey, SecretKey: acct.secretKey, SecurityToken: acct.securityToken,
		})
	} else {
		options := golangsdk.AuthOptions{
			IdentityEndpoint: acct.authURL, Username: acct.userName, UserID: acct.userID, Password: acct.password,
			DomainID: acct.domainID, DomainName: acct.domainName, TenantID: acct.projectID, TenantName: acct.projectName,
			// The session renews the token, because the SDK retries a refused renewal without end.
			AllowReauth: false,
		}
		if err = openstack.Authenticate(p, options); err == nil && p.TokenID == "" {
			err = errors.New("the reply contains no token")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("authenticate at %s: %w", acct.authURL, t.wrapError(opLogin, err))
	}
	return p, nil
}

type serviceEntry struct {
	name    string
	types   []string // in order of preference
	version string
	suffix  string // between the catalogue's URL and the resources
}

func serviceEntries() map[service]serviceEntry {
	return map[service]serviceEntry{
		serviceSMN: {"smn", []string{"smnv2", "smn"}, "v2", "notifications/"},
		serviceRDS: {"rds", []string{"rdsv3"}, "v3", ""},
		serviceCES: {"ces", []string{"cesv1", "ces"}, "V1.0", ""},
	}
}

func findServices(p *golangsdk.ProviderClient, projectID, region string,
	overrides map[string]string) (bases map[service]string, err error) {
	bases = map[service]string{}
	for s, e := range serviceEntries() {
		override := overrides[e.name]
		found := e.lookUp(p, region)
		if found == "" && override == "" {
			return nil, fmt.Errorf("cloud: the catalogue has no entry %s for region %s: set --endpoint %s=URL",
				strings.Join(e.types, " or "), region, e.name)
		}
		if bases[s], err = e.base(found, override, projectID); err != nil {
			return nil, err
		}
	}
	return bases, nil
}

// lookUp returns the URL of a service in the catalogue, or an empty text if it has none. It always passes the region,
// because the SDK ignores the region of access keys.
func (e serviceEntry) lookUp(p *golangsdk.ProviderClient, region string) string {
	for _, region := range []string{region, "*"} {
		for _, kind := range e.types {
			found, err := p.EndpointLocator(golangsdk.EndpointOpts{Type: kind, Region: region,
				Availability: golangsdk.AvailabilityPublic})
			if err == nil {
				return found
			}
		}
	}
	if e.name != "ces" {
		return ""
	}
	// Many catalogues lack Cloud Eye. The SDK derives its URL from the entry of block storage.
	if sc, err := openstack.NewCESClient(p, golangsdk.EndpointOpts{Region: region}); err == nil {
		return sc.Endpoint
	}
	return ""
}

// base returns the base URL of a service. It keeps port and path of the catalogue. An override replaces scheme and
// host, and its path is put before the catalogue's.
func (e serviceEntry) base(found, override, projectID string) (string, error) {
	u, err := url.Parse(found)
	if err != nil {
		return "", fmt.Errorf("cloud: catalogue entry of %s: %w", e.name, err)
	}
	path := strings.TrimRight(u.Path, "/")
	if !strings.Contains(path+"/", "/"+projectID+"/") {
		if !strings.HasSuffix(strings.ToLower(path), "/"+strings.ToLower(e.version)) {
			path += "/" + e.version
		}
		path += "/" + projectID
	}
	if override != "" {
		o, err := url.Parse(override)
		if err != nil || o.Host == "" || (o.Scheme != "https" && o.Scheme != "http") {
			return "", fmt.Errorf("endpoint %s: not an http(s) URL", e.name)
		}
		u = &url.URL{Scheme: o.Scheme, Host: o.Host}
		path = strings.TrimRight(o.Path, "/") + path
	}
	return u.Scheme + "://" + u.Host + path + "/" + e.suffix, nil
}

// fill adds the groups that OS_* lack and returns the type of authentication. It uses cacert. The SDK's reader drops
// "verify: false", so certificates are verified unless OS_INSECURE is set.
func (a *account) fill(file *openstack.Cloud, authType string) string {
	f := file.AuthInfo
	if a.authURL == "" {
		a.authURL = f.AuthURL
	}
	if a.userName == "" && a.userID == "" && a.password == "" && a.accessKey == "" {
		a.userName, a.userID, a.password = f.Username, f.UserID, f.Password
		a.accessKey, a.secretKey, a.securityToken = f.AccessKey, f.SecretKey, f.SecurityToken
		authType = string(file.AuthType)
	}
	if a.domainName == "" && a.domainID == "" {
		a.domainName, a.domainID = cmp.Or(f.UserDomainName, f.DomainName), cmp.Or(f.UserDomainID, f.DomainID)
	}
	if a.projectName == "" {
		a.region = cmp.Or(a.region, file.RegionName)
	}
	if a.projectName == "" && a.projectID == "" {
		a.projectName, a.projectID = f.ProjectName, f.ProjectID
	}
	a.caFile = cmp.Or(a.caFile, file.CACertFile)
	return authType
}

// readClouds reads clouds.yaml, secure.yaml and clouds-public.yaml with the SDK's reader, which panics on a broken file.
func readClouds(name string) (cloud *openstack.Cloud, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cloud credentials: clouds.yaml is not valid YAML, or cannot be read")
		}
	}()
	if cloud, err = openstack.NewEnv("OS_").Cloud(name); err != nil {
		return nil, fmt.Errorf("cloud credentials: clouds.yaml: %w", err)
	}
	if cloud.AuthInfo.AgencyName != "" { // without it, the login would be to another project than the file says
		return nil, errors.New("cloud credentials: an agency is not supported: give a user of the project itself")
	}
	return cloud, nil
}
