// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// field is one of the policy.
type field struct {
	Path, Value string
	Default     string // what it would be otherwise; empty where it is the default itself
	IsDefault   bool
}

// policyOf lists the fields in force, with what the schema would make of an empty policy.
func policyOf(spec v1alpha1.Spec) ([]field, error) {
	is, err := flatten(spec)
	if err != nil {
		return nil, err
	}
	would, err := flatten(autopilot.DefaultSpec())
	if err != nil {
		return nil, err
	}
	var fields []field
	for _, path := range slices.Sorted(maps.Keys(is)) {
		f := field{Path: path, Value: is[path], IsDefault: is[path] == would[path]}
		if !f.IsDefault {
			f.Default = would[path]
			if f.Default == "" {
				f.Default = "none"
			}
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// flatten returns the fields of a spec by their paths: a field that is new in the API is shown without another word here.
func flatten(spec v1alpha1.Spec) (map[string]string, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	flat := map[string]string{}
	var walk func(prefix string, node any)
	walk = func(prefix string, node any) {
		switch n := node.(type) {
		case map[string]any:
			for key, value := range n {
				walk(strings.TrimPrefix(prefix+"."+key, "."), value)
			}
		default:
			flat[prefix] = fmt.Sprint(n)
		}
	}
	walk("", tree)
	return flat, nil
}

// inForce are limits that follow from the policy and the instance together.
func (v *view) inForce(d *database) (limits []string) {
	a := d.autopilot
	limits = append(limits, fmt.Sprintf("The mode in force is %s: the narrower one of the policy's and of the service's, which is %s", d.Mode, v.mode))
	if i := a.Status.Instance; i != nil && i.VolumeGB > 0 {
		for _, m := range autopilot.MetricTable() {
			if m.Enabled(a.Spec) {
				limits = append(limits, fmt.Sprintf("The alarm for %s comes at %d %%", m.Label, m.EffectiveThreshold(a.Spec, int(i.VolumeGB))))
			}
		}
	}
	if b := a.Status.Baseline; b != nil {
		if a.Spec.Flavor.MaxVCPUs == nil {
			limits = append(limits, fmt.Sprintf("At most %d vCPUs: %d times those of the instance at first arming", autopilot.DefaultGrowth*b.VCPUs, autopilot.DefaultGrowth))
		}
		if a.Spec.Flavor.MaxMemoryGB == nil {
			limits = append(limits, fmt.Sprintf("At most %d GB memory: %d times that of the instance at first arming", autopilot.DefaultGrowth*b.MemoryGB, autopilot.DefaultGrowth))
		}
	}
	return limits
}
