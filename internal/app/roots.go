// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509"
	"fmt"
	"os"
)

// TrustRoots returns the system's trust roots and, if file is not empty, those of that PEM file.
func TrustRoots(file string) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if file == "" {
		return roots, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read trust roots: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read trust roots: %s contains no certificate", file)
	}
	return roots, nil
}
