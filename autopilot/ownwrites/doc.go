// SPDX-License-Identifier: Apache-2.0

// Package ownwrites knows what this process has written and has not yet got back by its watches. It must not know what the objects
// are.
package ownwrites
