// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// WriteStatus is the leader's write. It patches the differences between the status as read and the next one, and
// never the intake. If nothing differs, it sends nothing and returns read. Otherwise it returns the object as stored,
// autopilot.ErrConflict if the object has changed since it was read, or autopilot.ErrGone.
func (c *Cluster) WriteStatus(ctx context.Context, read *autopilotv1.RdsAutopilot,
	next autopilotv1.Status) (*autopilotv1.RdsAutopilot, error) {
	next.Intake = read.Status.Intake
	c.setUnreadable(read, &next)
	return c.patchStatus(ctx, read, read.Status, next)
}

// WriteIntake is the receiver's write. It patches the differences of the intake, and no other field. Its errors are
// those of WriteStatus.
func (c *Cluster) WriteIntake(ctx context.Context, read *autopilotv1.RdsAutopilot, in autopilotv1.Intake) error {
	_, err := c.patchStatus(ctx, read, autopilotv1.Status{Intake: read.Status.Intake}, autopilotv1.Status{Intake: in})
	return err
}

func (c *Cluster) patchStatus(ctx context.Context, read *autopilotv1.RdsAutopilot, old,
	new autopilotv1.Status) (*autopilotv1.RdsAutopilot, error) {
	patch, err := statusPatch(read.ResourceVersion, old, new)
	if err != nil {
		return nil, fmt.Errorf("encode status of RdsAutopilot %s/%s: %w", read.Namespace, read.Name, err)
	}
	if patch == nil {
		return read, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// With an older CRD, the API server would otherwise drop unknown fields, an intent for example, without an error.
	options := metav1.PatchOptions{FieldManager: self, FieldValidation: metav1.FieldValidationStrict}
	stored, err := c.autopilotsIn(read.Namespace).Patch(ctx, read.Name, types.MergePatchType, patch, options, "status")
	if err != nil {
		return nil, wrapError(err, "patch RdsAutopilot %s/%s", read.Namespace, read.Name)
	}
	trimAutopilot(stored)
	return stored, nil
}

// statusPatch returns the merge patch that changes one status into the other, with the resourceVersion as its
// precondition. It returns nil if nothing differs.
func statusPatch(resourceVersion string, old, new autopilotv1.Status) ([]byte, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(new)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(before, after) {
		return nil, nil
	}
	changed, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   json.RawMessage(changed),
	})
}
