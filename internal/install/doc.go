// SPDX-License-Identifier: Apache-2.0

// Package install has tests only: the chart, the image and the release, with the tools that people use (helm, kustomize, ko,
// crane, nginx), against a real API server. make tools builds these tools; the tests say so where one is missing.
package install
