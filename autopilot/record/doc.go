// SPDX-License-Identifier: Apache-2.0

// Package record keeps what follows a decision. FollowUp ends the changes that were in progress, Intent stores a change
// before it is requested, and Outcome stores what became of it, with the records of the decisions, the conditions, the
// warnings and the changes that are held.
//
// The package is pure: it turns one status into the next. It must not know how decisions are made, how the status is
// stored, or what the cloud's API looks like.
package record
