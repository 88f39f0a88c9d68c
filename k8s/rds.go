// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The fields of an Rds that the service writes.
const (
	volumeField = "volumesize"
	flavorField = "flavorref"
)

// PatchRds writes the intent's size or flavor into the Rds if the old value, the uid and the instance id are as they
// were read. It returns the Rds as stored. It returns autopilot.ErrConflict if one of them has changed,
// autopilot.ErrGone if there is no Rds, or an *autopilot.RefusedError. It never makes a volume smaller.
func (c *Cluster) PatchRds(ctx context.Context, read *autopilot.Target,
	i autopilotv1.Change) (*autopilot.Target, error) {
	if i.Kind == autopilotv1.KindFlavor {
		return c.patchRds(ctx, read, flavorField, read.Wanted.Flavor, i.To)
	}
	to, err := strconv.Atoi(i.To)
	if err != nil {
		return nil, fmt.Errorf("patch the size of Rds %s/%s: %w", read.Namespace, read.Name, err)
	}
	if from := read.Wanted.VolumeGB; to <= from {
		return nil, fmt.Errorf("patch the size of Rds %s/%s: %d GB is not more than %d GB", read.Namespace, read.Name, to, from)
	}
	return c.patchRds(ctx, read, volumeField, read.Wanted.VolumeGB, to)
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
	case err == nil && stored.Unreadable == "":
		return TargetOf(stored), nil
	case err == nil, isTestFailed(err):
		return nil, fmt.Errorf("%s: %w", tried, autopilot.ErrConflict)
	}
	return nil, wrapError(err, "%s", tried)
}

// Writer returns the field manager that wrote the requested size or flavor of the Rds. It returns an empty string if
// that is unknown or is this service, and autopilot.ErrGone if there is no Rds. It asks the API server, because the
// cache drops managed fields.
func (c *Cluster) Writer(ctx context.Context, t *autopilot.Target, kind autopilotv1.ChangeKind) (string, error) {
	field := volumeField
	if kind == autopilotv1.KindFlavor {
		field = flavorField
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := c.rdsIn(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return "", wrapError(err, "get Rds %s/%s", t.Namespace, t.Name)
	}
	writer, err := lastWriter(live.ManagedFields, "f:"+field)
	if writer == self {
		return "", err
	}
	return writer, err
}

func lastWriter(entries []metav1.ManagedFieldsEntry, field string) (manager string, err error) {
	var newest time.Time
	for _, e := range entries {
		if e.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if err := json.Unmarshal([]byte(e.FieldsV1.GetRawString()), &fields); err != nil {
			return "", fmt.Errorf("read managed fields of %s: %w", e.Manager, err)
		}
		at := cmp.Or(e.Time, &metav1.Time{}).Time
		if _, has := fields.Spec[field]; has && (manager == "" || at.After(newest)) {
			manager, newest = e.Manager, at
		}
	}
	return manager, nil
}
