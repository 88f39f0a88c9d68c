// SPDX-License-Identifier: Apache-2.0

// Package simcloud is a simulated Open Telekom Cloud for tests and for the sandbox: IAM (password and AK/SK), SMN (signs and
// delivers), Cloud Eye v1 (keeps raw data and evaluates rules) and RDS v3, over real HTTP on loopback addresses.
//
// It keeps the cloud's rules as far as they are documented; where they are not, a switch in [Settings] chooses. It must know
// nothing of the service under test, and imports only the standard library.
//
// Time. All timestamps come from [Options.Now]. [Options.Speed] shortens durations only: at 60 a minute of the cloud (raw
// interval of a metric, period of a rule, suppress_duration, a job, a retry) passes in one second of Now, while every timestamp
// stays a time of Now. Durations in this package are the cloud's unless they say otherwise.
//
// Nothing happens by itself: [Cloud.Run] evaluates rules and sends messages as time passes, [Cloud.Step] does once what is due,
// for tests with a clock of their own. API calls are answered at any time. As the listeners are real, a bubble of testing/synctest
// never comes to rest with a Cloud in it: give it a clock and call Step, or make it [Options.Local], which has none.
package simcloud
