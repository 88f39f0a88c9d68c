// SPDX-License-Identifier: Apache-2.0

// Package flavors is the catalogue of instance classes and the ladder to the next larger one. It compares numbers and
// names; it knows no cloud client, no policy and no database.
package flavors
