// SPDX-License-Identifier: Apache-2.0

// Package faults lets requests go wrong, for tests: on the way to the API server by a proxy, in the simulated cloud by its
// hook. Both speak of a fault in the same words (simcloud.Fault), and every fault comes in a pair: before the request was
// applied, and after it, when only the answer is lost.
//
// What goes wrong is chosen exactly ("the third patch rdsautopilots/status") by Nth, or by chance and repeatably by Random.
//
// It must know nothing of the service under test: it sees requests and names them.
package faults
