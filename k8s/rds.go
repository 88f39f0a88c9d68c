package k8s

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// GetRds asks the API server. It returns ErrGone if there is none.
func (c *Cluster) GetRds(ctx context.Context, namespace, name string) (*otcv1.Rds, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	rds, err := c.rdsIn(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, told(err, "get Rds %s/%s", namespace, name)
	}
	trim(&rds.ObjectMeta)
	return rds, nil
}

// PatchVolumeSize changes spec.volumesize, in GB, of the Rds with that uid, if it still is from. Otherwise it returns
// ErrChanged, or ErrGone if there is no Rds. It never makes a volume smaller.
func (c *Cluster) PatchVolumeSize(ctx context.Context, namespace, name string, uid types.UID, from, to int32) error {
	if to <= from {
		return fmt.Errorf("patch volumesize of Rds %s/%s: %d GB is not more than %d GB", namespace, name, to, from)
	}
	return c.patchRds(ctx, namespace, name, uid, "volumesize", from, to)
}

// PatchFlavorRef changes spec.flavorref of the Rds with that uid, if it still is from. Otherwise it returns ErrChanged,
// or ErrGone if there is no Rds.
func (c *Cluster) PatchFlavorRef(ctx context.Context, namespace, name string, uid types.UID, from, to string) error {
	return c.patchRds(ctx, namespace, name, uid, "flavorref", from, to)
}

// patchRds uses a JSON patch because it can say "only if", and touches nothing but the field it names. A
// resourceVersion would not do: the operator writes its status all the time.
func (c *Cluster) patchRds(ctx context.Context, namespace, name string, uid types.UID, field string, from, to any) error {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	patch, err := json.Marshal([]operation{
		{"test", "/metadata/uid", uid},
		{"test", "/spec/" + field, from},
		{"replace", "/spec/" + field, to},
	})
	if err != nil {
		return fmt.Errorf("encode patch of %s: %w", field, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = c.rdsIn(namespace).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: self})
	if isTestFailed(err) {
		return fmt.Errorf("patch %s of Rds %s/%s from %v to %v: %w", field, namespace, name, from, to, ErrChanged)
	}
	return told(err, "patch %s of Rds %s/%s from %v to %v", field, namespace, name, from, to)
}
