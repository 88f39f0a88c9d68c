// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a real kube-apiserver with a real etcd for tests and for the sandbox. Both are compiled from
// Go modules (the module in servers), so that a machine needs only Go. Conflicts, refused fields and missing rights are
// therefore real. The modules servers-1.28 and servers-1.31 pin older versions; see VersionVariable.
//
// No controller runs: nothing is garbage collected, a deleted namespace stays in Terminating, no default ServiceAccount is
// created, and a Deployment creates no pods.
//
// It must not know what this project does with Kubernetes: it takes files and returns a *rest.Config.
//
// A test package shares one cluster, and each test takes a namespace of its own:
//
//	var shared = apiserver.Shared{Options: apiserver.Options{CRDs: []string{"../deploy/crds/rds.yaml"}}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := shared.Cluster(t)
//		namespace := cluster.Namespace(t)
//		...
//	}
package apiserver
