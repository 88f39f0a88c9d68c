// SPDX-License-Identifier: Apache-2.0

// Package cases builds cases, their alarms and their status for the tests of the packages that decide and record. It
// must not import these packages, so that their own tests can import it.
//
// A test starts from Quiet and applies alterations, which are functions that modify a case. It sets the facts directly in
// the case. Unread then hides each fact until a walk needs it.
package cases
