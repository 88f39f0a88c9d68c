// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/k8s"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

// What happens while a watch is broken is seen all the same: streams end early, and then the API server has forgotten
// the version from which the next one is to go on.
func TestABrokenWatchIsResynced(t *testing.T) {
	t.Parallel()
	ns := shared.Cluster(t).Namespace(t)
	const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old resource version","code":410}`
	var gone atomic.Bool
	var refused atomic.Int32
	proxy, err := faults.NewProxy(asShipped(t), faults.Hooks{Fault: func(r *http.Request) *simcloud.Fault {
		switch {
		case faults.KubeName(r) != "watch rdss":
			return nil
		case gone.Load():
			refused.Add(1)
			return &simcloud.Fault{Status: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}}, Body: expired}
		}
		return &simcloud.Fault{Cut: true, Delay: 500 * time.Millisecond}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	c, err := k8s.Connect(t.Context(), &rest.Config{Host: proxy.URL}, k8s.Options{Version: "test", Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	createRds(t, c, ns, "early")
	run(t, c)
	eventually(t, "the cache has what there is", func() bool { return c.Target(ns, "early") != nil })

	gone.Store(true)
	eventually(t, "a watch is refused", func() bool { return refused.Load() > 0 })
	createRds(t, c, ns, "late")
	if err := rdss(t, ns).Delete(t.Context(), "early", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone.Store(false)
	eventually(t, "the cache has what there is now", func() bool {
		return c.Target(ns, "late") != nil && c.Target(ns, "early") == nil
	})
}
