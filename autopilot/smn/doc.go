// SPDX-License-Identifier: Apache-2.0

// Package smn reads the messages of the cloud's Simple Message Notification: the envelope, its signature, its
// certificate, and the Cloud Eye alarm inside. Every message may come from an attacker. So the parsers are strict, and
// each URL is compared with the configuration before it is fetched.
//
// The package does not use databases, policies, Kubernetes or HTTP status codes.
package smn
