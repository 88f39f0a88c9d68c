// Package week holds the tests of the service's real parts in a bubble of time, with Kubernetes in memory and a simulated
// cloud: a week takes as long as there is something to do. It has nothing but tests.
package week
