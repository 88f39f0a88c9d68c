// SPDX-License-Identifier: Apache-2.0

// Package flavors finds the next larger instance class in a catalogue. It compares numbers and names only. It knows
// neither the cloud's API nor the policy.
package flavors
