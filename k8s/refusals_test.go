// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"errors"
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

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const refusalText = "denied by policy: no owner label"

// refusing answers some requests with a status code, and passes on those with code 0.
type refusing struct {
	next http.RoundTripper
	code atomic.Pointer[func(*http.Request) int]
}

func (s *refusing) set(code func(*http.Request) int) { s.code.Store(&code) }

func (s *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	code := (*s.code.Load())(r)
	if code == 0 {
		return s.next.RoundTrip(r)
	}
	header, body := http.Header{}, "404 page not found\n"
	if code != http.StatusNotFound { // of a path that nobody serves
		header.Set("Content-Type", "application/json")
		reason := map[int]string{403: "Forbidden", 401: "Unauthorized"}[code]
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`, reason, refusalText, code)
	}
	return &http.Response{StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(body)), Header: header}, nil
}

// in returns the code for requests whose path contains one of the parts, and 0 for others.
func in(code int, parts ...string) func(*http.Request) int {
	return func(r *http.Request) int {
		if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(r.URL.Path, part) }) {
			return code
		}
		return 0
	}
}

// newRefusing returns a function that connects to a Kubernetes in memory, and the requests that it refuses. Each watched
// namespace has the Rds orders.
func newRefusing(t *testing.T, o k8s.Options) (*refusing, func() (*k8s.Cluster, error)) {
	t.Helper()
	k := newKubeInMemory(t)
	for _, ns := range o.Namespaces {
		if _, err := k.withNamespace(t, ns).rdss(t).Create(t.Context(), database(t, "orders"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	refused := &refusing{next: k.service.Transport}
	refused.set(in(0))
	k.service.Transport = refused
	return refused, func() (*k8s.Cluster, error) { return k8s.Connect(t.Context(), k.service, o) }
}

func TestForbiddenNamespaceStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, log := observer.New(zap.WarnLevel)
		api, connect := newRefusing(t, k8s.Options{Version: "test", Namespaces: []string{"aaa", "shop"}, Own: "shop", Log: zap.New(core)})
		api.set(in(http.StatusForbidden, "/aaa/"))
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
		api.set(in(0))
		time.Sleep(2 * time.Minute)
		if c.Target("aaa", "orders") == nil || len(c.RefusedNamespaces()) > 0 {
			t.Errorf("it is readable again, and refused: %v", c.RefusedNamespaces())
		}
	})
}

// Terraform's databases need no operator, and so no definition of Rds.
func TestRdsAreWatchedOnceTheyHaveADefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, log := observer.New(zap.WarnLevel)
		api, connect := newRefusing(t, k8s.Options{Version: "test", Namespaces: []string{"shop"}, Own: "shop", Log: zap.New(core)})
		api.set(in(http.StatusNotFound, "/rdss"))
		c, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		run(t, c)
		named := &autopilotv1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "named"}}
		named.Spec.InstanceID = "an-instance"
		if err := c.CreateRehearsal(t.Context(), named); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if live, err := c.LiveTarget(t.Context(), "shop", "named"); err != nil || !live.NoRds || c.Target("shop", "named") == nil {
			t.Errorf("the object that names its instance: %+v, %v", live, err)
		}
		if _, err := c.LiveTarget(t.Context(), "shop", "orders"); !errors.Is(err, autopilot.ErrGone) {
			t.Errorf("an object that nobody can have: %v", err)
		}
		if lines := log.FilterMessageSnippet("no definition").All(); !c.HasSynced() || len(lines) != 1 || log.Len() != 1 || len(c.RefusedNamespaces()) > 0 {
			t.Errorf("synced %t, refused %v, %d lines: %v", c.HasSynced(), c.RefusedNamespaces(), log.Len(), lines)
		}
		api.set(in(0))
		time.Sleep(2 * time.Minute)
		if c.Target("shop", "orders") == nil {
			t.Error("the Rds is not in the cache after its definition was installed")
		}
		api.set(in(http.StatusNotFound, "/rdss"))
		if _, err := c.LiveTarget(t.Context(), "shop", "orders"); err == nil || errors.Is(err, autopilot.ErrGone) {
			t.Errorf("a proxy's page made a known Rds look deleted: %v", err)
		}
	})
}

func TestCachesAreSyncedOnceEachListWasRead(t *testing.T) {
	for _, list := range []string{"/rdss", "/rdsautopilots", "/configmaps"} {
		synctest.Test(t, func(t *testing.T) {
			api, connect := newRefusing(t, k8s.Options{Version: "test", Namespaces: []string{"shop"}, Own: "shop", Log: zap.NewNop()})
			c, err := connect()
			if err != nil {
				t.Fatal(err)
			}
			begin, answered := time.Now(), make(chan struct{})
			api.set(func(r *http.Request) int {
				if strings.Contains(r.URL.Path, list) {
					<-answered
				}
				return 0
			})
			time.AfterFunc(10*time.Second, func() { close(answered) })
			run(t, c)
			if time.Since(begin) < 10*time.Second {
				t.Errorf("synced without the list of %s", list)
			}
		})
	}
}

func TestReachableAfterAnyAnswerButAFailure(t *testing.T) {
	for _, test := range []struct {
		name      string
		code      func(*http.Request) int
		reachable bool
	}{
		{"403 in the first namespace", in(http.StatusForbidden, "/aaa/"), true},
		{"403 everywhere", in(http.StatusForbidden, "/aaa/", "/shop/"), true},
		{"403 without etcd", func(r *http.Request) int { return max(in(403, "/aaa/")(r), in(500, "/shop/")(r)) }, false},
		{"our token is refused", in(http.StatusUnauthorized, "/aaa/", "/shop/"), false},
		{"overloaded", in(http.StatusTooManyRequests, "/aaa/", "/shop/"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, connect := newRefusing(t, k8s.Options{Version: "test", Namespaces: []string{"aaa", "shop"}, Own: "shop", Log: zap.NewNop()})
				c, err := connect()
				if err != nil {
					t.Fatal(err)
				}
				run(t, c)
				time.Sleep(time.Second)
				api.set(test.code)
				time.Sleep(time.Minute)
				if c.Reachable() != test.reachable {
					t.Errorf("reachable: %t", c.Reachable())
				}
			})
		})
	}
}
