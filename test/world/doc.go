// SPDX-License-Identifier: Apache-2.0

// Package world is everything around the service, on one machine and on loopback addresses only: Kubernetes with the
// custom resources (a real API server with the service's own rights, or one in memory), a simulated cloud on a fast clock,
// a fake operator, and an ingress. The service is the real binary in a process of its own.
//
// The sandbox and the end-to-end tests stand on it. It must know nothing of how the service works inside: it starts it,
// reads what it logs and serves, and sees what it does to the API server and the cloud.
//
//	w, err := world.Start(ctx, world.Options{})
//	defer w.Close()
//	db, err := w.AddDatabase(ctx, world.Database{Name: "orders", Flavor: "rds.mysql.n1.large.2", Autopilot: true})
//	service, err := w.Serve(ctx)
//	_, err = db.WaitAutopilot(ctx, "it is armed", world.Armed)
//	err = db.SetWorkload(simcloud.Workload{UsedGB: 33})
//	_, err = db.WaitRds(ctx, "50 GB are asked for", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 })
package world
