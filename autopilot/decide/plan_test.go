// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// planOf returns the plan of a case, with low usage of everything.
func planOf(t *testing.T, c autopilot.Case) *Plan {
	t.Helper()
	c, read := cases.Unread(c)
	for _, f := range []autopilot.Fact{autopilot.FactCatalogue, autopilot.FactResizeList} {
		if err := c.ReadFact(t.Context(), read, f); err != nil {
			t.Fatal(err)
		}
	}
	return &Plan{
		Case: c, Namespace: "shop", Name: "orders", Read: read,
		Evidence: map[v1alpha1.Metric]autopilot.Evidence{
			v1alpha1.MetricStorage: {Time: c.Now, UsedGB: 42}, v1alpha1.MetricCPU: {Time: c.Now, Percent: 12.5},
			v1alpha1.MetricMemory: {Time: c.Now, Percent: 50},
		},
	}
}

func TestPlanNamesTheFirstGuardAndTheDecisionAtTheThreshold(t *testing.T) {
	used := func(gb float64) func(*Plan) {
		return func(p *Plan) { p.Evidence[v1alpha1.MetricStorage] = autopilot.Evidence{Time: p.Now, UsedGB: gb} }
	}
	for name, tc := range map[string]struct {
		alter func(*Plan)
		want  string // lines of the plan that follow one another
	}{
		"a full volume grows now": {used(92), "\nstorage: GrowVolume 100 → 110 (AlarmInForce). Storage 100 → 110 GB: 92.0 % used, alarm at 85 %\n\ncpu:"},
		"candidates are listed while autopilot is off": {func(p *Plan) { p.Off = autopilot.Off{Reason: autopilot.ReasonNotEnabled, Message: "The mode is Off"} },
			"\ncpu: nothing (NotEnabled). The mode is Off\n  Not met: "},
		"a change that this check has seen first": {func(p *Plan) {
			p.Status.Changes = []v1alpha1.Change{cases.CompletedFlavor(0)}
		}, "(StaleEvidence). Cloud Eye has no measurement from after the last change yet\n  At 90 %: ChangeFlavor "},
		"without an instance": {func(p *Plan) { p.Instance, p.Evidence = nil, nil }, "no instance in the cloud\n\nstorage: nothing (InstanceUnknown)."},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, cases.Quiet())
			tc.alter(p)
			if text := p.Text(t.Context()); !strings.Contains(text, tc.want) {
				t.Errorf("the plan lacks %q:\n%s", tc.want, text)
			}
		})
	}
}

func TestPlanListsLargerFlavorsWithTheirRefusals(t *testing.T) {
	c := cases.Quiet()
	c.Instance.Flavor, c.Wanted.Flavor = "rds.mysql.n1.large.4", "rds.mysql.n1.large.4"
	c.Instance.VCPUs, c.Instance.MemoryGB = 2, 8
	c.Spec.Flavor.MaxVCPUs, c.Spec.Flavor.MaxMemoryGB = new(int32(16)), new(int32(64))
	c.Catalogue[1].Zones["eu-de-02"] = "sellout"
	p := planOf(t, c)
	p.Notes = []string{"Not armed yet: no alarm would reach the autopilot"}
	const want = `shop/orders, mode Auto: MySQL 8.0 single, 100 GB, rds.mysql.n1.large.4 (2 vCPUs, 8 GB), ACTIVE, in eu-de-01, eu-de-02
  Not armed yet: no alarm would reach the autopilot

storage: nothing (BelowThreshold). Storage stays at 100 GB: 42.0 % used, alarm at 85 %. Next check at 2026-11-20T12:01:00Z
  Not met: A recent measurement is at or over the threshold (storage: or the database is read-only; flavor: it is newer than the last change)
  At 85 %: GrowVolume 100 → 110 (AlarmInForce). Storage 100 → 110 GB: 85.0 % used, alarm at 85 %

cpu: nothing (BelowThreshold). The flavor stays rds.mysql.n1.large.4: 12.5 % CPU used, alarm at 90 %. Next check at 2026-11-20T12:01:00Z
  Not met: A recent measurement is at or over the threshold (storage: or the database is read-only; flavor: it is newer than the last change)
  At 90 %: ChangeFlavor rds.mysql.n1.large.4 → rds.mysql.n1.2xlarge.4 (AlarmInForce). Flavor rds.mysql.n1.large.4 (2 vCPUs, 8 GB) → rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB): 90.0 % CPU used, alarm at 90 %
  rds.mysql.n1.xlarge.4 (4 vCPUs, 16 GB): not available in every zone, sold out in eu-de-02
  rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB): available
  rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB): available
  rds.mysql.n1.8xlarge.4 (32 vCPUs, 128 GB): above the caps
`
	text := p.Text(t.Context())
	if diff := cmp.Diff(want, text[:strings.Index(text, "\nmemory:")]); diff != "" {
		t.Error(diff)
	}
}
