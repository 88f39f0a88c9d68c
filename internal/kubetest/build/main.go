// Command build compiles kube-apiserver and etcd into the cache ahead of the tests: go test holds a package's output
// back until it ends, so nobody would see why the first test takes minutes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcsps/rds-autopilot/internal/kubetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := kubetest.Servers(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "kubetest:", err)
		os.Exit(1)
	}
}
