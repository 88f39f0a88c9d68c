// Package install has tests only: the chart, the image and the release, with the tools that people use (helm, kustomize, ko,
// crane, nginx), against a real API server. Building these tools takes minutes, so make test-install runs the tests.
package install
