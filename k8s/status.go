package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// PatchStatus is the leader's write: it sends what differs between the status of old, as it was read, and of new, and
// never intake, whatever new has there. Nothing differs: nothing is sent. It returns the object as stored, ErrConflict if
// anyone wrote it since, or ErrGone.
func (c *Cluster) PatchStatus(ctx context.Context, old, new *autopilotv1.RdsAutopilot) (*autopilotv1.RdsAutopilot, error) {
	status := new.Status
	status.Intake = old.Status.Intake
	return c.patchStatus(ctx, old, status)
}

// PatchIntake is the webhook's write: it sends what differs between the intake of old, as it was read, and of new, and
// nothing else, whatever new has there. Otherwise it is like PatchStatus.
func (c *Cluster) PatchIntake(ctx context.Context, old, new *autopilotv1.RdsAutopilot) (*autopilotv1.RdsAutopilot, error) {
	status := old.Status
	status.Intake = new.Status.Intake
	return c.patchStatus(ctx, old, status)
}

// LeaderStatusOnly reports whether two versions of an object differ in nothing but what the leader itself writes to its
// status: such a change starts no new round.
func LeaderStatusOnly(old, new *autopilotv1.RdsAutopilot) bool {
	if old == nil || new == nil || old.UID != new.UID {
		return false
	}
	before, after := old.ObjectMeta, new.ObjectMeta
	before.ResourceVersion, after.ResourceVersion = "", ""
	return equality.Semantic.DeepEqual(before, after) && equality.Semantic.DeepEqual(old.Spec, new.Spec) &&
		equality.Semantic.DeepEqual(old.Status.Intake, new.Status.Intake)
}

func (c *Cluster) patchStatus(ctx context.Context, old *autopilotv1.RdsAutopilot, status autopilotv1.Status) (*autopilotv1.RdsAutopilot, error) {
	patch, err := statusPatch(old.ResourceVersion, old.Status, status)
	if err != nil {
		return nil, fmt.Errorf("encode status of RdsAutopilot %s/%s: %w", old.Namespace, old.Name, err)
	}
	if patch == nil {
		return old.DeepCopy(), nil
	}
	return c.patchAutopilot(ctx, old, patch, "status")
}

// patchAutopilot sends a merge patch, which carries the resourceVersion. Strict: a CRD older than this program would
// otherwise drop an intent without a word.
func (c *Cluster) patchAutopilot(ctx context.Context, a *autopilotv1.RdsAutopilot, patch []byte, subresource ...string) (*autopilotv1.RdsAutopilot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stored, err := c.autopilotsIn(a.Namespace).Patch(ctx, a.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: self, FieldValidation: metav1.FieldValidationStrict}, subresource...)
	if err != nil {
		return nil, told(err, "patch RdsAutopilot %s/%s", a.Namespace, a.Name)
	}
	trim(&stored.ObjectMeta)
	return stored, nil
}

// statusPatch returns nil if nothing differs.
func statusPatch(resourceVersion string, old, new autopilotv1.Status) ([]byte, error) {
	before, err := asMap(old)
	if err != nil {
		return nil, err
	}
	after, err := asMap(new)
	if err != nil {
		return nil, err
	}
	changed := difference(before, after)
	if len(changed) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   changed,
	})
}

// difference returns the merge patch (RFC 7386) that makes old into new: null for what is no longer there, objects by
// their difference, since a merge patch would keep old members, lists and all else whole.
func difference(old, new map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range old {
		if _, kept := new[key]; !kept {
			patch[key] = nil
		}
	}
	for key, after := range new {
		before, had := old[key]
		if had && reflect.DeepEqual(before, after) {
			continue
		}
		was, wasObject := before.(map[string]any)
		is, isObject := after.(map[string]any)
		if wasObject && isObject {
			after = difference(was, is)
		}
		patch[key] = after
	}
	return patch
}

func asMap(v any) (map[string]any, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber() // a generation is an int64
	var m map[string]any
	return m, decoder.Decode(&m)
}
