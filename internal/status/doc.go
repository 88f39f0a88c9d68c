// SPDX-License-Identifier: Apache-2.0

// Package status is the status page: which databases are armed, what was decided and why, and how this replica is.
//
// It only reads what the process has already: the caches of Kubernetes objects and the registry of metrics. It must know no
// client of the cloud or of the API server, so that a look at it costs nobody a call. Only a person who opens one database, or
// its plan, has the cloud asked, by functions that the page is given; the answer is kept for a while. It changes nothing.
package status
