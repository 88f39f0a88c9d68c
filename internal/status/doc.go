// SPDX-License-Identifier: Apache-2.0

// Package status is the status page: it shows which databases are armed, the decisions with their reasons, and the
// health of the replica.
//
// The page reads the caches of Kubernetes objects and the registry of metrics. It has no client of the cloud or of the
// API server, so the overview costs no call. The page of a database and its plan read from the cloud. They call
// functions in Options and cache the results. The page changes nothing. A script refreshes each page; every page is
// complete without it.
package status
