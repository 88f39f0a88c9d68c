// SPDX-License-Identifier: Apache-2.0

// Package insight explains what happened and never decides: the cause of a full volume, the findings on a larger
// flavor, the load before and after it, and the date on which the cap will be full. It computes them from Cloud Eye's
// history.
//
// The package is pure. It must not know how measurements are read, and no guard and no size depends on it.
package insight
