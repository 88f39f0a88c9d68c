// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"strings"
	"testing"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/identity/v3/tokens"
)

func TestFindServicesReturnsTheBaseURLOfEachService(t *testing.T) {
	const id = fakeProject
	full := map[string]string{
		"smnv2": "https://smn.eu-de.otc.t-systems.com:443/v2/" + id, "rdsv3": "https://rds.eu-de.otc.t-systems.com/rds/v3/" + id,
		"cesv1": "https://ces.eu-de.otc.t-systems.com/V1.0/" + id,
	}
	tests := map[string]struct {
		catalogue map[string]string
		overrides map[string]string
		service   service
		want      string
		err       string
	}{
		"SMN, the catalogue's port kept": {full, nil, serviceSMN, "https://smn.eu-de.otc.t-systems.com:443/v2/" + id + "/notifications/", ""},
		"RDS, the catalogue's path kept": {full, nil, serviceRDS, "https://rds.eu-de.otc.t-systems.com/rds/v3/" + id + "/", ""},
		"Cloud Eye by cesv1":             {full, nil, serviceCES, "https://ces.eu-de.otc.t-systems.com/V1.0/" + id + "/", ""},
		"Cloud Eye by ces, without a path": {
			map[string]string{"smnv2": full["smnv2"], "rdsv3": full["rdsv3"], "ces": "https://ces.example"}, nil,
			serviceCES, "https://ces.example/V1.0/" + id + "/", "",
		},
		"Cloud Eye derived from block storage": {
			map[string]string{"smnv2": full["smnv2"], "rdsv3": full["rdsv3"], "volumev2": "https://evs.eu-de.otc.t-systems.com/v2/" + id}, nil,
			serviceCES, "https://ces.eu-de.otc.t-systems.com/V1.0/" + id + "/", "",
		},
		"no Cloud Eye at all":              {map[string]string{"smnv2": full["smnv2"], "rdsv3": full["rdsv3"]}, nil, serviceCES, "", "--endpoint ces=URL"},
		"given, the catalogue's path kept": {full, map[string]string{"rds": "http://localhost:1234"}, serviceRDS, "http://localhost:1234/rds/v3/" + id + "/", ""},
		"given, and not in the catalogue":  {map[string]string{"smnv2": full["smnv2"], "rdsv3": full["rdsv3"]}, map[string]string{"ces": "https://ces.example"}, serviceCES, "https://ces.example/V1.0/" + id + "/", ""},
		"given for an unknown service":     {full, map[string]string{"ecs": "https://x"}, serviceSMN, "", "endpoint ecs: no such service"},
		"given without a scheme":           {full, map[string]string{"smn": "smn.example"}, serviceSMN, "", "endpoint smn: not an http(s) URL"},
		"an entry of another region":       {map[string]string{"smnv2": "eu-nl https://smn.nl", "rdsv3": full["rdsv3"], "cesv1": full["cesv1"]}, nil, serviceSMN, "", "--endpoint smn=URL"},
		"an entry of all regions":          {map[string]string{"smnv2": "* https://smn.all", "rdsv3": full["rdsv3"], "cesv1": full["cesv1"]}, nil, serviceSMN, "https://smn.all/v2/" + id + "/notifications/", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var catalogue tokens.ServiceCatalog
			for kind, where := range tt.catalogue {
				region, url, found := strings.Cut(where, " ")
				if !found {
					region, url = "eu-de", where
				}
				catalogue.Entries = append(catalogue.Entries, tokens.CatalogEntry{
					Type: kind, Endpoints: []tokens.Endpoint{{Region: region, Interface: "public", URL: url}},
				})
			}
			p := &golangsdk.ProviderClient{EndpointLocator: func(o golangsdk.EndpointOpts) (string, error) {
				return openstack.V3EndpointURL(&catalogue, o)
			}}
			bases, err := findServices(p, id, "eu-de", tt.overrides)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if bases[tt.service] != tt.want {
				t.Errorf("got  %s\nwant %s", bases[tt.service], tt.want)
			}
		})
	}
}
