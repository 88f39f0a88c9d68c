// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// If a refused login ended the process, its restarts would lock the account at IAM.
func TestServiceIsReadyWhileTheCloudRefusesTheCredentials(t *testing.T) {
	t.Parallel()
	sim, kube := inMemory(t)
	o := optionsIn(sim)
	env := o.Env
	o.DrainDelay = 0
	o.Env = func(name string) string {
		if name == "OS_PASSWORD" {
			return "wrong"
		}
		return env(name)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	a, err := New(ctx, kube.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	public, private := listenLocally(t), listenLocally(t)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, public, private) }()
	for status := 0; status != http.StatusOK; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + private.Addr().String() + "/readyz")
		if err == nil {
			status = resp.StatusCode
			_ = resp.Body.Close()
		}
		if ctx.Err() != nil {
			t.Fatalf("not ready: %d, %v", status, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := sim.Count("iam", "CreateToken"); n != 1 {
		t.Errorf("%d logins", n)
	}
}

func listenLocally(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
