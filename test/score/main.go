// SPDX-License-Identifier: Apache-2.0

// Command score compares the rules of rds-autopilot with those of other systems, on the same loads and the same cloud.
// It writes docs/scoreboard.md and its picture. make score runs it in the root of the repository.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := write(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write computes all scores and writes the page below root. It reports each load on out.
func write(out io.Writer, root string) error {
	start := time.Now()
	b, err := compute(func(group, load string) {
		fmt.Fprintf(out, "%6.1f s  %s: %s\n", time.Since(start).Seconds(), group, load)
	})
	if err != nil {
		return err
	}
	files, err := b.render()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(root, f.name), []byte(f.text), 0o644); err != nil { //nolint:gosec // documents
			return fmt.Errorf("write the scoreboard: %w", err)
		}
		fmt.Fprintf(out, "── wrote %s\n", f.name)
	}
	return nil
}
