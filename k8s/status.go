// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// WriteStatus is the leader's write: it sends what differs between the status as it was read and the next one, and never
// the intake, whatever next has there. Nothing differs: nothing is sent. It returns the object as stored,
// autopilot.ErrConflict if anyone wrote it since, or autopilot.ErrGone.
func (c *Cluster) WriteStatus(ctx context.Context, read *autopilotv1.RdsAutopilot, next autopilotv1.Status) (*autopilotv1.RdsAutopilot, error) {
	next.Intake = read.Status.Intake
	stored, err := c.patchStatus(ctx, read, next)
	if err == nil {
		c.keep(stored)
	}
	return stored, err
}

// WriteIntake is the webhook's write: it sends what differs in the intake, and nothing else. What was read may lack its history.
// Otherwise it is like WriteStatus.
func (c *Cluster) WriteIntake(ctx context.Context, read *autopilotv1.RdsAutopilot, in autopilotv1.Intake) error {
	status := read.Status
	status.Intake = in
	stored, err := c.patchStatus(ctx, read, status)
	if err == nil && c.keepIntake(read.ResourceVersion, stored) && !stored.IsDoctors() {
		c.onIntake(stored)
	}
	return err
}

// OnIntake has f called with every autopilot whose intake was written here, where the watch has not told of it yet. It belongs before
// Run.
func (c *Cluster) OnIntake(f func(stored *autopilotv1.RdsAutopilot)) { c.onIntake = f }

func (c *Cluster) patchStatus(ctx context.Context, old *autopilotv1.RdsAutopilot, status autopilotv1.Status) (*autopilotv1.RdsAutopilot, error) {
	patch, err := statusPatch(old.ResourceVersion, old.Status, status)
	if err != nil {
		return nil, fmt.Errorf("encode status of RdsAutopilot %s/%s: %w", old.Namespace, old.Name, err)
	}
	if patch == nil {
		return old, nil
	}
	stored, err := c.patchAutopilot(ctx, old, patch, "status")
	if err == nil {
		stored.Status = status
	}
	return stored, err
}

// metadataOnly has the API server answer with the metadata: the rest is what was read and what was sent, for a patch that carries
// the resourceVersion goes on top of nothing else. In a storm of alarms the whole objects would be most of what is read.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// patchAutopilot sends a merge patch, which carries the resourceVersion, and returns what was read with the metadata of the answer.
// Strict: a CRD older than this program would otherwise drop an intent without a word.
func (c *Cluster) patchAutopilot(ctx context.Context, a *autopilotv1.RdsAutopilot, patch []byte, subresource ...string) (*autopilotv1.RdsAutopilot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	result := c.ownAPI.Patch(types.MergePatchType).Namespace(a.Namespace).Resource(autopilotv1.Resource).Name(a.Name).SubResource(subresource...).
		SetHeader("Accept", metadataOnly).
		VersionedParams(&metav1.PatchOptions{FieldManager: self, FieldValidation: metav1.FieldValidationStrict}, c.codec).
		Body(patch).Do(ctx)
	var answer metav1.PartialObjectMetadata
	body, err := result.Raw()
	if err = cmp.Or(result.Error(), err); err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		return nil, wrapError(err, "patch RdsAutopilot %s/%s", a.Namespace, a.Name)
	}
	stored := *a
	stored.ObjectMeta = answer.ObjectMeta
	trim(&stored.ObjectMeta)
	return &stored, nil
}

// statusPatch returns nil if nothing differs.
func statusPatch(resourceVersion string, old, new autopilotv1.Status) ([]byte, error) {
	// Most of a long status is as it was, and shares its memory: to see that costs a fraction of a comparison that knows how else the
	// same may be written. It is not encoded: neither side has it here.
	same := true
	was, is := reflect.ValueOf(&old).Elem(), reflect.ValueOf(&new).Elem()
	for i := range was.NumField() {
		before, after := was.Field(i).Interface(), is.Field(i).Interface()
		if reflect.DeepEqual(before, after) || equality.Semantic.DeepEqual(before, after) {
			was.Field(i).SetZero()
			is.Field(i).SetZero()
		} else {
			same = false
		}
	}
	if same {
		return nil, nil
	}
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
