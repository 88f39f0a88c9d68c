package k8s

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// PatchVolumeSize changes spec.volumesize, in GB, of an Rds, if that, the uid and the instance id still are as they were
// read. It returns the Rds as the API server answers with it, and ErrChanged, ErrGone if there is no Rds, or
// ErrRefused. It never makes a volume smaller.
func (c *Cluster) PatchVolumeSize(ctx context.Context, read *otcv1.Rds, to int32) (*otcv1.Rds, error) {
	if from := read.Spec.VolumeSize; to <= from {
		return nil, fmt.Errorf("patch volumesize of Rds %s/%s: %d GB is not more than %d GB", read.Namespace, read.Name, to, from)
	}
	return c.patchRds(ctx, read, "volumesize", read.Spec.VolumeSize, to)
}

// PatchFlavorRef changes spec.flavorref of an Rds as PatchVolumeSize does the size.
func (c *Cluster) PatchFlavorRef(ctx context.Context, read *otcv1.Rds, to string) (*otcv1.Rds, error) {
	return c.patchRds(ctx, read, "flavorref", read.Spec.FlavorRef, to)
}

// patchRds uses a JSON patch because it can say "only if", and touches nothing but the field it names. A
// resourceVersion would not do: the operator writes its status all the time.
func (c *Cluster) patchRds(ctx context.Context, read *otcv1.Rds, field string, from, to any) (*otcv1.Rds, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{{"test", "/metadata/uid", read.UID}}
	if read.Status.ID != "" {
		operations = append(operations, operation{"test", "/status/id", read.Status.ID})
	}
	patch, err := json.Marshal(append(operations, operation{"test", "/spec/" + field, from}, operation{"replace", "/spec/" + field, to}))
	if err != nil {
		return nil, fmt.Errorf("encode patch of %s: %w", field, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stored, err := c.rdsIn(read.Namespace).Patch(ctx, read.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: self})
	tried := fmt.Sprintf("patch %s of Rds %s/%s from %v to %v", field, read.Namespace, read.Name, from, to)
	switch {
	case err == nil:
		trim(&stored.ObjectMeta)
		return stored, nil
	case isTestFailed(err):
		return nil, fmt.Errorf("%s: %w", tried, ErrChanged)
	case isGone(err), apierrors.IsConflict(err), !isRefused(err):
		return nil, told(err, "%s", tried)
	}
	return nil, fmt.Errorf("%s: %w: %w", tried, ErrRefused, err)
}
