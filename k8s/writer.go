package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// FieldWriter asks the API server which other field manager wrote a field of the Rds' spec last; empty if it does not know, or
// if that were we. The cache does not keep that. It returns ErrGone if there is no Rds.
func (c *Cluster) FieldWriter(ctx context.Context, rds *otcv1.Rds, field string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := c.rdsIn(rds.Namespace).Get(ctx, rds.Name, metav1.GetOptions{})
	if err != nil {
		return "", told(err, "get Rds %s/%s", rds.Namespace, rds.Name)
	}
	writer, err := lastWriter(live.ManagedFields, "f:"+field)
	if writer == self {
		return "", err
	}
	return writer, err
}

// lastWriter is the manager of the newest entry that has the field in its spec.
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
		at := time.Time{}
		if e.Time != nil {
			at = e.Time.Time
		}
		if _, has := fields.Spec[field]; has && (manager == "" || at.After(newest)) {
			manager, newest = e.Manager, at
		}
	}
	return manager, nil
}
