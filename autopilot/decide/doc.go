// SPDX-License-Identifier: Apache-2.0

// Package decide turns a case into decisions. Table has all guards in their order, and Decide walks through it. The
// first guard that objects names the reason. A guard that needs a fact which nobody has read yet stops the walk: Decide
// returns that fact, the caller reads it and calls Decide again. So nothing is read that no decision needs, and the
// loop and the dry run differ only in how they read.
//
// The package is pure. It must not know how facts are read, how decisions are stored, or what happened after them.
package decide
