package otc

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
)

// enter logs in and finds the project and the services.
func enter(ctx context.Context, t *transport, who account, endpoints map[string]string) (*grant, error) {
	p, err := login(ctx, t, who)
	if err != nil {
		return nil, err
	}
	g := &grant{who: who, projectID: p.ProjectID, region: either(who.region, p.RegionID)}
	if !who.byKey() {
		g.token = p.TokenID
	}
	switch {
	case g.projectID == "":
		return nil, errors.New("cloud: the token is for no project: set OS_PROJECT_NAME or OS_PROJECT_ID")
	case g.region == "":
		return nil, errors.New("cloud: the region is unknown: set OS_REGION_NAME")
	}
	g.bases, err = findServices(p, g.projectID, g.region, endpoints)
	return g, err
}

// login authenticates once. The client it returns is not used for requests; it holds token, project and catalogue.
func login(ctx context.Context, t *transport, who account) (*golangsdk.ProviderClient, error) {
	p, err := openstack.NewClient(who.authURL)
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	t.bind(call{t: t, ctx: ctx, op: opLogin}, p)
	if who.byKey() {
		err = openstack.Authenticate(p, golangsdk.AKSKAuthOptions{
			IdentityEndpoint: who.authURL, Region: who.region, ProjectId: who.projectID, ProjectName: who.projectName,
			AccessKey: who.accessKey, SecretKey: who.secretKey, SecurityToken: who.securityToken,
		})
	} else {
		options := golangsdk.AuthOptions{
			IdentityEndpoint: who.authURL, Username: who.userName, UserID: who.userID, Password: who.password,
			DomainID: who.domainID, DomainName: who.domainName, TenantID: who.projectID, TenantName: who.projectName,
			// Renewing is the session's: the SDK's would never end (and deadlocks for a token).
			AllowReauth: false,
		}
		if err = openstack.Authenticate(p, options); err == nil && p.TokenID == "" {
			err = errors.New("the reply holds no token")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("authenticate at %s: %w", who.authURL, t.told(opLogin, err))
	}
	return p, nil
}

// place is how a service is found in the catalogue, and what its path looks like if the catalogue does not say.
type place struct {
	name    string
	types   []string // in order of preference
	version string
	suffix  string // between the catalogue's URL and the resources
}

func places() map[service]place {
	return map[service]place{
		serviceSMN: {"smn", []string{"smnv2", "smn"}, "v2", "notifications/"},
		serviceRDS: {"rds", []string{"rdsv3"}, "v3", ""},
		serviceCES: {"ces", []string{"cesv1", "ces"}, "V1.0", ""},
	}
}

// findServices turns the catalogue and the overrides into base URLs.
func findServices(p *golangsdk.ProviderClient, projectID, region string, overrides map[string]string) (map[service]string, error) {
	bases := map[service]string{}
	known := map[string]bool{}
	for s, at := range places() {
		known[at.name] = true
		override := overrides[at.name]
		found := at.lookUp(p, region)
		if found == "" && override == "" {
			return nil, fmt.Errorf("cloud: the catalogue has no entry %s for region %s: give --endpoint %s=URL", strings.Join(at.types, " or "), region, at.name)
		}
		base, err := at.base(found, override, projectID)
		if err != nil {
			return nil, err
		}
		bases[s] = base
	}
	for name := range overrides {
		if !known[name] {
			return nil, fmt.Errorf("endpoint %s: no such service; smn, ces and rds are known", name)
		}
	}
	return bases, nil
}

// lookUp asks the catalogue; "" if it has no such entry. The region is always given: the SDK forgets it for access keys.
func (at place) lookUp(p *golangsdk.ProviderClient, region string) string {
	for _, region := range []string{region, "*"} {
		for _, kind := range at.types {
			found, err := p.EndpointLocator(golangsdk.EndpointOpts{Type: kind, Region: region, Availability: golangsdk.AvailabilityPublic})
			if err == nil {
				return found
			}
		}
	}
	if at.name != "ces" {
		return ""
	}
	// Cloud Eye is missing in many catalogues; the SDK derives it from the block storage's entry.
	if sc, err := openstack.NewCESClient(p, golangsdk.EndpointOpts{Region: region}); err == nil {
		return sc.Endpoint
	}
	return ""
}

// base keeps the catalogue's path and port; an override replaces scheme and host, its own path goes in front.
func (at place) base(found, override, projectID string) (string, error) {
	u, err := url.Parse(found)
	if err != nil {
		return "", fmt.Errorf("cloud: catalogue entry of %s: %w", at.name, err)
	}
	path := strings.TrimRight(u.Path, "/")
	if !strings.Contains(path+"/", "/"+projectID+"/") {
		if !strings.HasSuffix(strings.ToLower(path), "/"+strings.ToLower(at.version)) {
			path += "/" + at.version
		}
		path += "/" + projectID
	}
	if override != "" {
		o, err := url.Parse(override)
		if err != nil || o.Host == "" || (o.Scheme != "https" && o.Scheme != "http") {
			return "", fmt.Errorf("endpoint %s: not an http(s) URL", at.name)
		}
		u = &url.URL{Scheme: o.Scheme, Host: o.Host}
		path = strings.TrimRight(o.Path, "/") + path
	}
	return u.Scheme + "://" + u.Host + path + "/" + at.suffix, nil
}
