// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net/http"
	"slices"
	"time"
)

// Fault is a fault of one request. Several fields may be set.
type Fault struct {
	// Delay in real time before anything else.
	Delay time.Duration
	// Status replaces the cloud's own status.
	Status int
	// Apply applies the request before Status is sent. Without it the request has no effect.
	Apply bool
	// Hang sends no answer until the client leaves. With Apply, the request is applied before.
	Hang bool
	// Header is added to the reply, such as Retry-After or Location.
	Header http.Header
	// Body replaces the body of the reply. It needs Status.
	Body string
}

// DeliveryFault is a fault of one attempt to deliver a message.
type DeliveryFault struct {
	// Drop loses the message for good.
	Drop bool
	// Duplicate sends the message once more at once.
	Duplicate bool
	// LoseReply delivers the message and then counts as a connection error, so that it is sent again.
	LoseReply bool
	// Delay postpones the message by that time of the cloud, once.
	Delay time.Duration
}

// Request is a request that the cloud has seen.
type Request struct {
	Time               time.Time
	Service, Operation string
	Method, URI        string
}

type operationKey struct{}

// OperationOf names a request, for Options.Fault: the service (iam, smn, ces, rds, cert, console) and the operation,
// such as ListAlarms; see the lists of operations in this package.
func OperationOf(r *http.Request) (service, operation string) {
	names, _ := r.Context().Value(operationKey{}).([2]string)
	return names[0], names[1]
}

// Requests returns all requests since the start or the last ResetRequests, oldest first.
func (c *Cloud) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Count counts the requests to a service (an empty operation: to all its operations) since the start or the last
// ResetRequests.
func (c *Cloud) Count(service, operation string) int {
	n := 0
	for _, r := range c.Requests() {
		if r.Service == service && (operation == "" || r.Operation == operation) {
			n++
		}
	}
	return n
}

// ResetRequests forgets the requests seen.
func (c *Cloud) ResetRequests() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = nil
}
