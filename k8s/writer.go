// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

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
