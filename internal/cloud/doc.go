// SPDX-License-Identifier: Apache-2.0

// Package cloud is Open Telekom Cloud as the controller needs it: in the domain's types, and with readings that are shared, so
// that a storm of alarms costs the calls of one. It knows neither Kubernetes nor HTTP; internal/otc makes the calls.
package cloud
