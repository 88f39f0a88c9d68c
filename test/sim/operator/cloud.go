// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
)

const statusActive = "ACTIVE"

// requestTimeout limits each request to the cloud, because the SDK takes no context.
const requestTimeout = 10 * time.Second

// Cloud is RDS as the operator uses it. It is for one goroutine.
type Cloud struct{ client *golangsdk.ServiceClient }

// Connect authenticates by password with OS_… variables given as KEY=value. A nil transport means the network.
func Connect(env []string, transport http.RoundTripper) (*Cloud, error) {
	get := func(key string) string {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, key+"="); ok {
				return v
			}
		}
		return ""
	}
	provider, err := openstack.NewClient(get("OS_AUTH_URL"))
	if err != nil {
		return nil, fmt.Errorf("cloud: %w", err)
	}
	provider.HTTPClient = http.Client{Timeout: requestTimeout, Transport: transport}
	err = openstack.Authenticate(provider, golangsdk.AuthOptions{
		IdentityEndpoint: get("OS_AUTH_URL"), Username: get("OS_USERNAME"), Password: get("OS_PASSWORD"),
		DomainName: get("OS_USER_DOMAIN_NAME"), TenantName: get("OS_PROJECT_NAME"), AllowReauth: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cloud: authenticate: %w", err)
	}
	client, err := openstack.NewRDSV3(provider, golangsdk.EndpointOpts{Region: get("OS_REGION_NAME")})
	if err != nil {
		return nil, fmt.Errorf("cloud: find RDS: %w", err)
	}
	return &Cloud{client}, nil
}

type instance struct {
	id, ip, status, flavor string
	volumeGB               int
}

// find returns the instance with that name, or nil if there is none.
func (c *Cloud) find(name string) (*instance, error) {
	list, err := instances.List(c.client, instances.ListOpts{Name: name})
	if err != nil {
		return nil, fmt.Errorf("find instance %s: %w", name, err)
	}
	if len(list.Instances) == 0 {
		return nil, nil
	}
	found := list.Instances[0]
	inst := &instance{id: found.Id, status: found.Status, flavor: found.FlavorRef, volumeGB: found.Volume.Size}
	if len(found.PrivateIps) > 0 {
		inst.ip = found.PrivateIps[0]
	}
	return inst, nil
}

func (c *Cloud) resize(id, flavor string) error {
	_, err := instances.Resize(c.client, instances.ResizeOpts{InstanceId: id, SpecCode: flavor})
	return err
}

func (c *Cloud) enlarge(id string, toGB int) error {
	_, err := instances.EnlargeVolume(c.client, instances.EnlargeVolumeRdsOpts{InstanceId: id, Size: toGB})
	return err
}
