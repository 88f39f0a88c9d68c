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
)

// checkout is the folder of the module that the working directory is in.
func checkout(ctx context.Context) (string, error) {
	out, err := command(ctx, "", "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	path, dir, _ := strings.Cut(strings.TrimSpace(out), " ")
	if path != "github.com/mcsps/rds-autopilot" {
		return "", fmt.Errorf("the working directory is not in a checkout of rds-autopilot, but of %s", path)
	}
	return dir, nil
}

// Build compiles the service, unless Options.Binary names one. It is compiled once.
func (w *World) Build(ctx context.Context) error {
	w.building.Lock()
	defer w.building.Unlock()
	if w.options.Binary != "" {
		return nil
	}
	binary := filepath.Join(w.dir, serviceName)
	args := []string{"build", "-o", binary}
	if w.options.Race {
		args = append(args, "-race")
	}
	if _, err := command(ctx, w.root, "go", append(args, "./cmd/rds-autopilot")...); err != nil {
		return fmt.Errorf("compile rds-autopilot: %w", err)
	}
	w.options.Binary = binary
	return nil
}

// command runs a program and returns what it printed.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	// An interrupted go build removes its work folder, a killed one does not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var errText bytes.Buffer
	cmd.Stderr = &errText
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(errText.String())), ctx.Err())
	}
	return string(out), nil
}
