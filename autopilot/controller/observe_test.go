// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// ofNode is a cloud that knows every id as that of a node.
type ofNode struct{ InstanceReader }

func (ofNode) Instance(context.Context, string, time.Time) (*autopilot.Instance, error) {
	return &autopilot.Instance{ID: "1234in01"}, nil
}

func TestIDOfANodeIsNoInstanceAndNamesTheInstance(t *testing.T) {
	o := Observer{Instances: ofNode{}, Now: time.Now, Claims: func(context.Context, string) ([]*autopilot.Target, error) {
		t.Error("claims of an id that is no instance's are read")
		return nil, nil
	}}
	c, err := o.Observe(t.Context(), &autopilot.Target{InstanceID: "5678no01"}, &v1alpha1.RdsAutopilot{}, time.Now())
	if err != nil || c.Instance != nil || c.NodeOf != "1234in01" {
		t.Errorf("%+v, %q, %v", c.Instance, c.NodeOf, err)
	}
}
