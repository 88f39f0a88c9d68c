// SPDX-License-Identifier: Apache-2.0

// Package world is everything around the service, on one machine and on loopback addresses only: Kubernetes with the
// custom resources (a real API server with the service's own rights, or one in memory), a simulated cloud on a fast clock,
// a fake operator, and an ingress. The service is the real binary in a process of its own.
//
// The sandbox and the end-to-end tests use it. It must not know how the service works inside. It starts the service, reads its
// log and its pages, and sees its requests to the API server and the cloud.
//
//	w, err := world.Start(ctx, world.Options{})
//	defer w.Close()
//	db, err := w.AddDatabase(ctx, world.Database{Name: "orders", Flavor: "rds.mysql.n1.large.2", Autopilot: true})
//	service, err := w.Serve(ctx)
//	_, err = db.WaitAutopilot(ctx, "it is armed", world.Armed)
//	err = db.SetWorkload(simcloud.Workload{UsedGB: 33})
//	_, err = db.WaitRds(ctx, "50 GB are requested", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 })
package world
