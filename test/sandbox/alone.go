// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// aloneName is the name of the database that has no Rds.
const aloneName = "archive"

// alone is a database that has no Rds, as one that Terraform has made: the autopilot asks the cloud itself.
func (s *scenario) alone(ctx context.Context) {
	const name, fromGB, toGB = aloneName, 40, 50
	s.beginStory(name, "has no Rds: an RdsAutopilot with its instanceID and apply: Cloud looks after it")
	defer s.endStory(name)
	db, err := s.world.AddDatabase(ctx, world.Database{Name: name, Flavor: "rds.pg.n1.large.4", VolumeGB: fromGB, Workload: simcloud.Workload{UsedGB: 10}, NoRds: true})
	if err == nil {
		err = db.CreateAutopilot(ctx, fmt.Sprintf(`{"apply":"Cloud","instanceID":%q}`, db.ID))
	}
	if err == nil {
		err = armed(ctx, db)
	}
	s.checklist.add(name+": armed without an Rds", err)
	if err != nil {
		return
	}
	err = db.SetWorkload(simcloud.Workload{UsedGB: 33})
	if err == nil {
		_, err = db.WaitAutopilot(ctx, "its volume is grown", func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.Changes) > 0 && a.Status.Changes[0].State == v1alpha1.StateCompleted
		})
	}
	in := db.Instance()
	if err == nil && in.VolumeGB != toGB {
		err = fmt.Errorf("it has %d GB, not %d", in.VolumeGB, toGB)
	}
	s.printStep(actorCloud, name, "was asked by the autopilot itself, and the instance is %s: %d GB", in.Status, in.VolumeGB)
	s.checklist.add(name+": the alarm leads to a request to the cloud, and that to a larger volume", err)
}
