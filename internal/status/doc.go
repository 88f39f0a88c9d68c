// SPDX-License-Identifier: Apache-2.0

// Package status is the status page: which databases are armed, what was decided and why, and how this replica is.
//
// It only reads what the process has already: the caches of Kubernetes objects and the registry of metrics. It must know no
// client of the cloud or of the API server, so that a look at it costs nobody a call. Only a person who opens one database, or
// its plan, has the cloud asked, and who opens the health, the API server for the replicas: by functions that the page is given;
// the answers are kept for a while. It changes nothing. A script renews what is seen; every page is complete without it.
package status
