// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the definitions, manifests and examples that are installed in a cluster. It contains only tests.
// They apply every file to a real API server and act as the ServiceAccount with exactly the rights written here.
package deploy
