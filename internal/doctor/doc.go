// SPDX-License-Identifier: Apache-2.0

// Package doctor tests the real cloud once, and reports in one line per check whether rds-autopilot would work with it.
// It creates objects with names of its own and removes all of them. It changes no database and no object of the tenant.
//
// The package reads no flags, knows no exit codes and makes no decisions about databases.
package doctor
