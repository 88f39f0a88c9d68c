// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func fieldOf(kind autopilotv1.ChangeKind) (string, error) {
	switch kind {
	case autopilotv1.KindVolume:
		return "volumesize", nil
	case autopilotv1.KindFlavor:
		return "flavorref", nil
	}
	return "", fmt.Errorf("unknown kind of change %q", kind)
}

// PatchRds writes the intent's size or flavor into the Rds if the old value, the uid and the instance id are as they
// were read. It returns the Rds as stored. It returns autopilot.ErrConflict if one of them has changed,
// autopilot.ErrGone if there is no Rds, or an *autopilot.RefusedError. It never makes a volume smaller.
func (c *Cluster) PatchRds(ctx context.Context, read *autopilot.Target,
	i autopilotv1.Change) (*autopilot.Target, error) {
	field, err := fieldOf(i.Kind)
	if err != nil {
		return nil, fmt.Errorf("patch Rds %s/%s: %w", read.Namespace, read.Name, err)
	}
	if i.Kind == autopilotv1.KindFlavor {
		return c.patchRds(ctx, read, field, read.Wanted.Flavor, i.To)
	}
	to, err := strconv.Atoi(i.To)
	if err != nil {
		return nil, fmt.Errorf("patch %s of Rds %s/%s: %w", field, read.Namespace, read.Name, err)
	}
	if from := read.Wanted.VolumeGB; to <= from {
		return nil, fmt.Errorf("patch %s of Rds %s/%s: %d GB is not more than %d GB", field, read.Namespace, read.Name, to,
			from)
	}
	return c.patchRds(ctx, read, field, read.Wanted.VolumeGB, to)
}

// patchRds sends a JSON patch, because that can test old values and writes only the field that it names. A
// resourceVersion as precondition would fail often, because the operator writes its status all the time.
func (c *Cluster) patchRds(ctx context.Context, read *autopilot.Target, field string, from,
	to any) (*autopilot.Target, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{{"test", "/metadata/uid", read.UID}}
	if read.InstanceID != "" {
		operations = append(operations, operation{"test", "/status/id", read.InstanceID})
	}
	patch, err := json.Marshal(append(operations, operation{"test", "/spec/" + field, from},
		operation{"replace", "/spec/" + field, to}))
	if err != nil {
		return nil, fmt.Errorf("encode patch of %s: %w", field, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stored, err := c.rdsIn(read.Namespace).Patch(ctx, read.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: self})
	tried := fmt.Sprintf("patch %s of Rds %s/%s from %v to %v", field, read.Namespace, read.Name, from, to)
	switch {
	case err == nil:
		return TargetOf(stored), nil
	case isTestFailed(err):
		return nil, fmt.Errorf("%s: %w", tried, autopilot.ErrConflict)
	}
	return nil, wrapError(err, "%s", tried)
}
