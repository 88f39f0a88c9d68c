// SPDX-License-Identifier: Apache-2.0

// Package manual holds tests of what people read and type: the commands of the documents, and the real kubectl where
// "make tools" has built it.
package manual
