// SPDX-License-Identifier: Apache-2.0

// Package doctor tries the real cloud once, and says in one line per check whether rds-autopilot would work with it. What it
// makes there has its own names, and it removes all of it. It changes no database, and nothing of the tenant.
//
// It must not know flags and exit codes, nor decide anything.
package doctor
