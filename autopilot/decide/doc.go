// SPDX-License-Identifier: Apache-2.0

// Package decide turns a case into decisions. Table has all guards in their order, and Walk walks through it. The
// first guard that objects names the reason. A guard that needs a fact reads it, through the reader that the caller
// gives. So nothing is read that no decision needs, and the loop and the dry run differ only in how they read.
//
// The package is pure. It must not know how facts are read, how decisions are stored, or what happened after them.
package decide
