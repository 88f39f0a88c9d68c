// SPDX-License-Identifier: Apache-2.0

// Package smn reads what the cloud's Simple Message Notification posts: the envelope, its signature, the certificate it
// names, and the Cloud Eye alarm inside. Everything here may come from an attacker: parsers are strict, and nothing is
// fetched that was not first compared with what the operator configured.
//
// It must not know databases, policies, Kubernetes or HTTP status codes.
package smn
