// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// refusing is an API server that answers requests to some namespaces with one status code.
type refusing struct {
	next http.RoundTripper
	by   atomic.Pointer[func(*http.Request) int]
}

func (s *refusing) set(code func(*http.Request) int) { s.by.Store(&code) }

func (s *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	by := s.by.Load()
	if by == nil || (*by)(r) == 0 {
		return s.next.RoundTrip(r)
	}
	code := (*by)(r)
	reason := map[int]string{403: "Forbidden", 401: "Unauthorized"}[code]
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"no","code":%d}`, reason, code)
	return &http.Response{
		StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

// in refuses the requests to these namespaces.
func in(code int, namespaces ...string) func(*http.Request) int {
	return func(r *http.Request) int {
		for _, ns := range namespaces {
			if strings.Contains(r.URL.Path, "/namespaces/"+ns+"/") {
				return code
			}
		}
		return 0
	}
}

// simulated is a simulated API server with an Rds in each namespace, and the requests that are refused.
func simulated(t *testing.T, o k8s.Options) (*refusing, func() (*k8s.Cluster, error)) {
	t.Helper()
	server, err := simkube.New(simkube.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	databases, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range o.Namespaces {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns},
		}}
		namespaces := databases.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		if _, err := namespaces.Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		rdss := databases.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(ns)
		if _, err := rdss.Create(t.Context(), database("orders"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	config := server.Config()
	refused := &refusing{next: config.Transport}
	config.Transport = refused
	return refused, func() (*k8s.Cluster, error) { return k8s.Connect(t.Context(), config, o) }
}

func TestForbiddenNamespaceStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, log := observer.New(zap.WarnLevel)
		api, connect := simulated(t, k8s.Options{Version: "test", Namespaces: []string{"aaa", "shop"}, Log: zap.New(core)})
		api.set(in(http.StatusForbidden, "aaa"))
		c, err := connect()
		if err != nil {
			t.Fatalf("one namespace is readable: %v", err)
		}
		run(t, c)
		time.Sleep(time.Hour)
		if !c.HasSynced() || !c.Reachable() || c.Target("shop", "orders") == nil || c.Target("aaa", "orders") != nil {
			t.Errorf("synced %t, reachable %t", c.HasSynced(), c.Reachable())
		}
		if refused := c.RefusedNamespaces(); !slices.Equal(refused, []string{"aaa"}) {
			t.Errorf("refused: %v", refused)
		}
		if lines := log.FilterMessageSnippet("refuses to list a watched namespace").All(); len(lines) != 2 || lines[0].ContextMap()["namespace"] != "aaa" { // one of each resource
			t.Errorf("warnings: %v", lines)
		}
		if n := log.FilterMessageSnippet("Failed to watch").Len(); n > 0 {
			t.Errorf("the library logs each attempt: %d lines in an hour", n)
		}
		if _, err := c.LiveAutopilots(t.Context()); err != nil {
			t.Errorf("list what is readable: %v", err)
		}
		api.set(in(0))
		time.Sleep(2 * time.Minute)
		if c.Target("aaa", "orders") == nil || len(c.RefusedNamespaces()) > 0 {
			t.Errorf("it is readable again, and refused: %v", c.RefusedNamespaces())
		}
	})
}

func TestConnectNeedsOneReadableNamespace(t *testing.T) {
	api, connect := simulated(t, k8s.Options{Version: "test", Namespaces: []string{"aaa", "shop"}, Log: zap.NewNop()})
	api.set(in(http.StatusForbidden, "aaa", "shop"))
	if _, err := connect(); err == nil || !strings.Contains(err.Error(), "refuses what deploy/rbac.yaml allows") {
		t.Errorf("no namespace is readable: %v", err)
	}
	api.set(in(http.StatusServiceUnavailable, "shop"))
	if _, err := connect(); err == nil {
		t.Error("the API server fails, and the service starts")
	}
}

func TestAnyAnswerOfTheAPIServerMakesItReachable(t *testing.T) {
	for _, test := range []struct {
		name  string
		code  func(*http.Request) int
		ready bool
	}{
		{"403 in the first namespace", in(http.StatusForbidden, "aaa"), true},
		{"403 everywhere", in(http.StatusForbidden, "aaa", "shop"), true},
		{"403 without etcd", func(r *http.Request) int { return max(in(403, "aaa")(r), in(500, "shop")(r)) }, false},
		{"our token is refused", in(http.StatusUnauthorized, "aaa", "shop"), false},
		{"overloaded", in(http.StatusTooManyRequests, "aaa", "shop"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, connect := simulated(t, k8s.Options{Version: "test", Namespaces: []string{"aaa", "shop"}, Log: zap.NewNop()})
				c, err := connect()
				if err != nil {
					t.Fatal(err)
				}
				run(t, c)
				time.Sleep(time.Second)
				api.set(test.code)
				time.Sleep(time.Minute)
				if c.Reachable() != test.ready {
					t.Errorf("reachable: %t", c.Reachable())
				}
			})
		})
	}
}
