// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// withoutCRD is an API server that does not serve Rds until the CRD is installed.
type withoutCRD struct {
	next      http.RoundTripper
	installed atomic.Bool
}

func (s *withoutCRD) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.installed.Load() || !strings.HasPrefix(r.URL.Path, "/apis/"+otcv1.Group) {
		return s.next.RoundTrip(r)
	}
	body := io.NopCloser(strings.NewReader("404 page not found\n"))
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: body, Request: r}, nil
}

func TestWatchOfRdsStartsWithinAMinuteOfTheCRD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := simkube.New(simkube.Options{CRDs: crds})
		if err != nil {
			t.Fatal(err)
		}
		databases, err := dynamic.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		rdss := databases.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace("default")
		if _, err := rdss.Create(t.Context(), database("orders"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		config := server.Config()
		lacking := &withoutCRD{next: config.Transport}
		config.Transport = lacking
		c, err := k8s.Connect(t.Context(), config, k8s.Options{Version: "test", RdsOptional: true, Log: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		var told atomic.Int32
		if err := c.OnTarget(func(_, _ *autopilot.Target) { told.Add(1) }); err != nil {
			t.Fatal(err)
		}
		run(t, c)
		time.Sleep(time.Hour)
		if !c.HasSynced() || !c.LacksRds() || c.Target("default", "orders") != nil {
			t.Errorf("without the CRD: synced %t, lacks the CRD %t", c.HasSynced(), c.LacksRds())
		}
		if _, err := c.LiveTarget(t.Context(), "default", "orders"); err == nil {
			t.Error("a live read finds an Rds without the CRD")
		}
		lacking.installed.Store(true)
		time.Sleep(time.Minute + time.Second)
		if c.LacksRds() || c.Target("default", "orders") == nil || told.Load() != 1 {
			t.Errorf("a minute after the CRD: lacks the CRD %t, %d events", c.LacksRds(), told.Load())
		}
	})
}
