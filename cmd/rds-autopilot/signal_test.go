// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// A terminal that closes sends SIGHUP, often twice. If it ended the process at once, doctor would leave a rule that is
// always in alarm.
func TestHangupEndsTheContextAndNotTheProcess(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM, os.Interrupt} {
		// Without this, the process of the tests would end where the code is wrong.
		caught := make(chan os.Signal, 4)
		signal.Notify(caught, s)
		ctx, stop := untilSignal(t.Context())
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if err := self.Signal(s); err != nil {
			t.Fatal(err)
		}
		<-caught
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Errorf("%v does not end the context", s)
		}
		if ctx.Err() != context.Canceled {
			t.Errorf("%v: %v", s, ctx.Err())
		}
		stop()
		signal.Stop(caught)
	}
}
