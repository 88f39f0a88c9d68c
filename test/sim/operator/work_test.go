// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	small = "rds.mysql.n1.large.2"
	large = "rds.mysql.n1.xlarge.2"
)

const fullSpec = `{autopilot: true, availabilityzone: "eu-de-01,eu-de-02", backupkeepdays: 0, backupstarttime: "02:00-03:00", databases: [a, b],
  datastoretype: MySQL, datastoreversion: "8.0", flavorref: rds.mysql.n1.large.2, hamode: Ha, hareplicationmode: async, port: "3307",
  password: Not-a-secret-1, region: eu-de, subnet: s, securitygroup: g, volumetype: CLOUDSSD, volumesize: 40, vpc: v,
  users: [{name: u, host: "10.0.0.0/8", password: p, privileges: [GRANT ALL]}, {name: w}]}`

func TestTypesHaveEveryFieldOfTheArchivedCRD(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/testdata/rds-original.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Versions []struct {
			Schema struct {
				OpenAPIV3Schema struct {
					Properties map[string]struct {
						Properties map[string]struct{ Type string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"string": "x", "integer": int64(7), "boolean": true, "array": []any{"x"},
	}
	object := map[string]any{"metadata": map[string]any{"name": "x"}}
	for part, fields := range definition.Versions[0].Schema.OpenAPIV3Schema.Properties {
		filled := map[string]any{}
		for field, property := range fields.Properties {
			filled[field] = values[property.Type]
		}
		object[part] = filled
	}
	spec := object["spec"].(map[string]any)
	if len(spec) < 20 {
		t.Fatalf("the definition was not read: %v", spec)
	}
	spec["users"] = []any{map[string]any{"name": "n", "host": "h", "password": "p", "privileges": []any{"g"}}}
	rds, err := snapshot(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	back, err := rds.unstructured()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"spec", "status"} {
		if diff := cmp.Diff(object[part], back.Object[part]); diff != "" {
			t.Errorf("%s (-read +written):\n%s", part, diff)
		}
	}
}

func TestWriteBackDropsUnknownFields(t *testing.T) {
	b := newBench(t, fullSpec, simcloud.Instance{Flavor: small, VolumeGB: 40})
	before := b.object()
	b.work(b.snapshot(), false)
	after := b.object()
	if before.Object["spec"].(map[string]any)["autopilot"] != true {
		t.Fatal("spec.autopilot was not there to be dropped")
	}
	unstructured.RemoveNestedField(before.Object, "spec", "autopilot")
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
	want := map[string]any{
		"id": b.id, "ip": "192.168.0.10", "status": "ACTIVE", "autopilot": false, "logs": false, "reboot": false,
	}
	if diff := cmp.Diff(want, after.Object["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	version := after.GetResourceVersion()
	b.work(b.snapshot(), false)
	if now := b.object().GetResourceVersion(); now != version {
		t.Error("an object that says all the operator knows is written again")
	}
}

func TestOperatorAppliesSpecChanges(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		act        string // "" for none
		flavor     string
		volumeGB   int
		tryAgain   bool
		thenFlavor string
	}{
		{name: "nothing that the cloud has already", spec: "{flavorref: " + small + ", volumesize: 100}", flavor: small, volumeGB: 100},
		{name: "a larger volume", spec: "{flavorref: " + small + ", volumesize: 110}", act: Enlarge, flavor: small, volumeGB: 110},
		{name: "no smaller volume", spec: "{flavorref: " + small + ", volumesize: 90}", flavor: small, volumeGB: 100},
		{name: "a larger flavor", spec: "{flavorref: " + large + ", volumesize: 100}", act: Resize, flavor: large, volumeGB: 100},
		{name: "a smaller flavor", spec: "{flavorref: rds.mysql.n1.medium.2, volumesize: 100}", act: Resize, flavor: "rds.mysql.n1.medium.2", volumeGB: 100},
		{name: "first a volume, then a flavor", spec: "{flavorref: " + large + ", volumesize: 110}", act: Enlarge, flavor: small, volumeGB: 110, tryAgain: true, thenFlavor: large},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, test.spec, simcloud.Instance{Flavor: small, VolumeGB: 100})
			snap := b.snapshot()
			b.work(snap, test.tryAgain)
			got := ""
			if len(b.acts) > 0 {
				got = (<-b.acts).What
			}
			b.pass(time.Hour)
			if in := b.instance(); got != test.act || in.Flavor != test.flavor || in.VolumeGB != test.volumeGB {
				t.Errorf("act %q, then %s and %d GB, want %q, %s and %d GB", got, in.Flavor, in.VolumeGB, test.act, test.flavor, test.volumeGB)
			}
			if !test.tryAgain {
				return
			}
			b.work(snap, false)
			b.pass(time.Hour)
			if in := b.instance(); in.Flavor != test.thenFlavor {
				t.Errorf("the second try led to %s, want %s", in.Flavor, test.thenFlavor)
			}
		})
	}
}

func TestOperatorRetriesASnapshotWithItsOldSpec(t *testing.T) {
	b := newBench(t, "{flavorref: "+small+", volumesize: 100}", simcloud.Instance{Flavor: small, VolumeGB: 100})
	b.setStatus("BACKING UP")
	old := b.snapshot()
	b.work(old, true)
	b.setStatus("ACTIVE")
	b.patch(`{"flavorref":"` + large + `"}`)
	b.work(b.snapshot(), false)
	b.pass(time.Hour)
	if flavor := b.instance().Flavor; flavor != large {
		t.Fatalf("the new spec led to %s", flavor)
	}
	b.work(old, false)
	b.pass(time.Hour)
	if flavor := b.instance().Flavor; flavor != small {
		t.Errorf("the old snapshot led to %s, want %s: it is applied as it was", flavor, small)
	}
	if flavor := b.snapshot().Spec.FlavorRef; flavor != large {
		t.Errorf("the old snapshot was written over the new spec: %s", flavor)
	}
}
