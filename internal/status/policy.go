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

// field is a field of the policy.
type field struct {
	Path, Value string
	Default     string // the default value; empty if the field has it
	IsDefault   bool
}

// policyOf returns the fields in force and the schema's defaults.
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

// flatten returns the fields of a spec by their paths. It reads JSON, so that the page shows new fields of the API by
// itself.
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

// inForce returns the limits that follow from the policy together with the instance.
func (v *view) inForce(d *database) (limits []string) {
	a := d.autopilot
	limits = append(limits, fmt.Sprintf("The mode in force is %s: the narrower one of the policy's mode and the service's mode %s", d.Mode, v.mode))
	if i := a.Status.Instance; i != nil && i.VolumeGB > 0 {
		for _, m := range autopilot.MetricTable() {
			if m.Enabled(a.Spec) {
				limits = append(limits, fmt.Sprintf("The alarm for %s fires at %d %%", m.Label, m.EffectiveThreshold(a.Spec, int(i.VolumeGB))))
			}
		}
	}
	if b := a.Status.Baseline; b != nil {
		if a.Spec.Flavor.MaxVCPUs == nil {
			limits = append(limits, fmt.Sprintf("At most %d vCPUs: %d times those of the instance when it was first armed",
				autopilot.DefaultGrowth*b.VCPUs, autopilot.DefaultGrowth))
		}
		if a.Spec.Flavor.MaxMemoryGB == nil {
			limits = append(limits, fmt.Sprintf("At most %d GB memory: %d times that of the instance when it was first armed",
				autopilot.DefaultGrowth*b.MemoryGB, autopilot.DefaultGrowth))
		}
	}
	return limits
}
