// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// Build compiles the service, unless Options.Binary names one.
func (w *World) Build(ctx context.Context) error {
	w.building.Lock()
	defer w.building.Unlock()
	if w.options.Binary != "" {
		return nil
	}
	binary, err := Binary(ctx, w.options.Race)
	w.options.Binary = binary
	return err
}

// Binary compiles the service into the folder .cache of the checkout, with the race detector or without. Several processes share
// the binary: they wait for each other, and go build keeps a binary that is up to date.
func Binary(ctx context.Context, race bool) (string, error) {
	root, err := apiserver.Checkout()
	if err != nil {
		return "", err
	}
	binary, cgo, args := filepath.Join(root, ".cache", serviceName), "CGO_ENABLED=0", []string{"build", "-buildvcs=false"}
	if race {
		binary, cgo, args = binary+"-race", "CGO_ENABLED=1", append(args, "-race")
	}
	unlock, err := apiserver.Lock(ctx, binary+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := command(ctx, root, []string{cgo}, "go", append(args, "-o", binary, "./cmd/rds-autopilot")...); err != nil {
		return "", fmt.Errorf("compile rds-autopilot: %w", err)
	}
	return binary, nil
}

// command runs a program that prints nothing if it succeeds. env extends the environment.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	// An interrupted go build removes its work folder, a killed one does not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(out)), ctx.Err())
	}
	return nil
}
