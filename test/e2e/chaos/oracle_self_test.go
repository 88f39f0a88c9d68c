// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

func TestOracleRejectsAWrongStep(t *testing.T) {
	level.Short(t)
	const patchPath = "/apis/otc.mcsps.de/v1alpha1/namespaces/default/rdss/db"
	volume := func(from, to string) string {
		return `[{"op":"test","path":"/metadata/uid","value":"x"},{"op":"test","path":"/status/id","value":"y"},{"op":"test","path":"/spec/volumesize","value":` + from + `},{"op":"replace","path":"/spec/volumesize","value":` + to + `}]`
	}
	flavor := func(to string) string {
		return `[{"op":"test","path":"/metadata/uid","value":"x"},{"op":"test","path":"/spec/flavorref","value":"rds.mysql.n1.large.4"},{"op":"replace","path":"/spec/flavorref","value":"` + to + `"}]`
	}
	for name, tc := range map[string]struct {
		load    simcloud.Workload
		method  string
		patches []string
		right   bool
	}{
		"what the used space needs":        {simcloud.Workload{UsedGB: 92}, http.MethodPatch, []string{volume("100", "110")}, true},
		"two steps for the same evidence":  {simcloud.Workload{UsedGB: 92}, http.MethodPatch, []string{volume("100", "110"), volume("110", "120")}, false},
		"a step too far":                   {simcloud.Workload{UsedGB: 92}, http.MethodPatch, []string{volume("100", "120")}, false},
		"no alarm at all":                  {simcloud.Workload{UsedGB: 84}, http.MethodPatch, []string{volume("100", "110")}, false},
		"two steps in a row":               {simcloud.Workload{UsedGB: 97}, http.MethodPatch, []string{volume("100", "110"), volume("110", "120")}, true},
		"smaller":                          {simcloud.Workload{UsedGB: 92}, http.MethodPatch, []string{volume("100", "90")}, false},
		"past the cap":                     {simcloud.Workload{UsedGB: 119}, http.MethodPatch, []string{volume("120", "130")}, false},
		"the next flavor":                  {simcloud.Workload{CPUDemand: 1.9}, http.MethodPatch, []string{flavor("rds.mysql.n1.xlarge.2")}, true},
		"a flavor too far":                 {simcloud.Workload{CPUDemand: 1.9}, http.MethodPatch, []string{flavor("rds.mysql.n1.2xlarge.2")}, false},
		"a flavor with no more memory":     {simcloud.Workload{MemoryDemandGB: 7.9}, http.MethodPatch, []string{flavor("rds.mysql.n1.xlarge.2")}, false},
		"a flavor without a load":          {simcloud.Workload{}, http.MethodPatch, []string{flavor("rds.mysql.n1.xlarge.2")}, false},
		"another field":                    {simcloud.Workload{UsedGB: 92}, http.MethodPatch, []string{strings.ReplaceAll(volume("100", "110"), "volumesize", "volumetype")}, false},
		"the whole object":                 {simcloud.Workload{UsedGB: 92}, http.MethodPut, []string{volume("100", "110")}, false},
		"without a test on the old value":  {simcloud.Workload{UsedGB: 92}, http.MethodPatch, []string{`[{"op":"replace","path":"/spec/volumesize","value":110}]`}, false},
		"a patch that was not carried out": {simcloud.Workload{}, http.MethodPatch, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &chaos{history: newHistory(), dbs: []*database{{
				DB: &world.DB{Name: "db"}, maxGB: 120, first: simcloud.Instance{VCPUs: 2, MemoryGB: 8}, wantsMore: true,
			}}}
			c.history.load("db", tc.load)
			for _, body := range tc.patches {
				c.history.answered(httptest.NewRequest(tc.method, patchPath, nil), []byte(body), http.StatusOK)
			}
			c.history.answered(httptest.NewRequest(http.MethodPatch, patchPath, nil), []byte(volume("40", "4000")), http.StatusUnprocessableEntity)
			if wrong := c.violations(); len(wrong) == 0 != tc.right {
				t.Errorf("violations: %q", wrong)
			}
		})
	}
}

func TestOracleRejectsAWrongCloudRequest(t *testing.T) {
	level.Short(t)
	enlarge := func(gb int) string { return fmt.Sprintf(`{"enlarge_volume":{"size":%d}}`, gb) }
	resize := func(code string) string { return fmt.Sprintf(`{"resize_flavor":{"spec_code":%q}}`, code) }
	in := simcloud.Instance{Name: "db", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100}
	for name, tc := range map[string]struct {
		load  simcloud.Workload
		body  string
		right bool
	}{
		"what the used space needs": {simcloud.Workload{UsedGB: 92}, enlarge(110), true},
		"what it has":               {simcloud.Workload{}, enlarge(100), true},
		"a step too far":            {simcloud.Workload{UsedGB: 92}, enlarge(120), false},
		"smaller":                   {simcloud.Workload{UsedGB: 92}, enlarge(90), false},
		"no alarm at all":           {simcloud.Workload{UsedGB: 84}, enlarge(110), false},
		"the next flavor":           {simcloud.Workload{CPUDemand: 1.9}, resize("rds.mysql.n1.xlarge.2"), true},
		"the flavor it has":         {simcloud.Workload{}, resize(in.Flavor), true},
		"a flavor without a load":   {simcloud.Workload{}, resize("rds.mysql.n1.xlarge.2"), false},
		"something else":            {simcloud.Workload{UsedGB: 92}, `{"restart":{}}`, false},
	} {
		c := &chaos{history: newHistory(), dbs: []*database{{
			DB: &world.DB{Name: "db"}, maxGB: 120, first: simcloud.Instance{VCPUs: 2, MemoryGB: 8}, wantsMore: true, withoutRds: true,
		}}}
		c.history.load("db", tc.load)
		c.history.requestedChange(in, httptest.NewRequest(http.MethodPost, "/action", strings.NewReader(tc.body)))
		if wrong := c.violations(); len(wrong) == 0 != tc.right {
			t.Errorf("%s: violations: %q", name, wrong)
		}
	}
}
