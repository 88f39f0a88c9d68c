// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
)

func TestALocalCloudIsReachedInABubbleThroughTheSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Start(Options{Local: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		in, err := c.AddInstance(Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100})
		if err != nil {
			t.Fatal(err)
		}
		provider, err := openstack.NewClient(c.AuthURL())
		if err != nil {
			t.Fatal(err)
		}
		provider.HTTPClient = http.Client{Transport: c}
		id := c.identity
		if err := openstack.Authenticate(provider, golangsdk.AuthOptions{
			IdentityEndpoint: c.AuthURL(), Username: id.userName, Password: id.password, DomainName: id.domainName, TenantName: id.projectName,
		}); err != nil {
			t.Fatal(err)
		}
		rds, err := openstack.NewRDSV3(provider, golangsdk.EndpointOpts{Region: c.Region()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := instances.EnlargeVolume(rds, instances.EnlargeVolumeRdsOpts{InstanceId: in.ID, Size: 110}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if got, _ := c.Instance(in.ID); got.VolumeGB != 110 {
			t.Errorf("%d GB after the job", got.VolumeGB)
		}
		for _, url := range []string{"https://" + c.CertHost() + "/smn/none.pem", "https://" + c.ConfirmHost() + "/none"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if reply, err := c.RoundTrip(r); err != nil || reply.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %v, %v", url, reply, err)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := c.RoundTrip(r); err == nil {
			t.Errorf("another host answers %s", reply.Status)
		}
	})
}
