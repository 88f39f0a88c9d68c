// SPDX-License-Identifier: Apache-2.0

// Package deploy holds what is installed in a cluster: definitions, manifests and examples. It has no code but tests,
// which hand every file to a real API server and act as the ServiceAccount with exactly the rights written here.
package deploy
