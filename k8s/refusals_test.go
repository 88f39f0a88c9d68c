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
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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
	if r.URL.Path == "/apis" { // without a definition of Rds
		return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(`{"kind":"APIGroupList"}`))}, nil
	}
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

// connectRefusing connects to a Kubernetes in memory, of which some requests are refused. Each of the watched namespaces
// has the Rds orders.
func connectRefusing(t *testing.T, log *zap.Logger, refuse func(*http.Request) int, namespaces ...string,
) (*refusing, *k8s.Cluster) {
	t.Helper()
	k := newKubeInMemory(t)
	for _, ns := range namespaces {
		_, err := k.withNamespace(t, ns).rdss(t).Create(t.Context(), database(t, "orders"), metav1.CreateOptions{})
		must(t, err)
	}
	api := &refusing{next: k.service.Transport}
	api.set(refuse)
	k.service.Transport = api
	o := k8s.Options{Version: "test", Namespaces: namespaces, Own: "shop", Log: log}
	c, err := k8s.Connect(t.Context(), k.service, o)
	must(t, err)
	return api, c
}

func TestForbiddenNamespaceStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, log := observer.New(zap.WarnLevel)
		api, c := connectRefusing(t, zap.New(core), in(http.StatusForbidden, "/aaa/"), "aaa", "shop")
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
		api, c := connectRefusing(t, zap.New(core), in(http.StatusNotFound, "/rdss"), "shop")
		run(t, c)
		named := &autopilotv1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "named"}}
		named.Spec.InstanceID = "an-instance"
		must(t, c.Create(t.Context(), named))
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
			api, c := connectRefusing(t, zap.NewNop(), in(0), "shop")
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
				api, c := connectRefusing(t, zap.NewNop(), in(0), "aaa", "shop")
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

func TestRefusedRdsAutopilotIsAWarningOnTheRds(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	refused := &refusing{}
	k.service.Wrap(func(rt http.RoundTripper) http.RoundTripper { refused.next = rt; return refused })
	refused.set(in(0))
	c := k.connect(t)
	run(t, c)
	rds := k.createRds(t, c, "shop")
	refused.set(in(http.StatusForbidden, "/rdsautopilots"))
	if err := c.CreateAutopilot(t.Context(), rds); err == nil {
		t.Fatal("it is created")
	}
	eventually(t, "the Rds has a Warning with the text of the policy", func() bool {
		list := k.events(t, "Rds")
		return len(list) == 1 && list[0].Type == "Warning" && strings.Contains(list[0].Note, refusalText)
	})
}

// events returns the events about objects of a kind.
func (k kube) events(t *testing.T, kind string) (found []eventsv1.Event) {
	t.Helper()
	client, err := kubernetes.NewForConfig(k.admin)
	must(t, err)
	list, err := client.EventsV1().Events(k.namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, e := range list.Items {
		if e.Regarding.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

func TestEventsOfTheSameFactAreMergedAndThoseOfChangesAreNot(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t)
	run(t, c)
	a := k.createAutopilot(t, c, "shop")
	rds, err := c.LiveTarget(t.Context(), k.namespace, "shop")
	must(t, err)
	grow := func(to int) {
		t.Helper()
		if rds, err = c.PatchRds(t.Context(), rds, toSize(to)); err != nil {
			t.Fatal(err)
		}
	}

	c.Event(rds, nil, autopilot.Event{Reason: "StorageFull", Action: "None", Note: "100 % sure"})
	eventually(t, "the Rds has an event", func() bool { return len(k.events(t, "Rds")) == 1 })
	e := k.events(t, "Rds")[0]
	if e.ReportingController != "rds-autopilot" || e.Type != "Normal" || e.Reason != "StorageFull" || e.Action != "None" ||
		e.Note != "100 % sure" || e.Regarding.Name != "shop" || e.Regarding.UID != rds.UID || e.Regarding.APIVersion != "otc.mcsps.de/v1alpha1" {
		t.Errorf("event %+v", e)
	}
	c.Event(nil, a, autopilot.Event{Warning: true, Reason: "CapReached", Action: "None", Note: strings.Repeat("ü", 2000)})
	eventually(t, "the RdsAutopilot has an event", func() bool { return len(k.events(t, "RdsAutopilot")) == 1 })
	if e := k.events(t, "RdsAutopilot")[0]; e.Type != "Warning" || len(e.Note) > 1024 || e.Regarding.UID != a.UID {
		t.Errorf("event %+v", e)
	}

	grow(50) // the Rds has another version, and the event is still the same
	c.Event(rds, nil, autopilot.Event{Reason: "StorageFull", Action: "None", Note: "again"})
	eventually(t, "the event counts two", func() bool {
		found := k.events(t, "Rds")
		return len(found) == 1 && found[0].Series != nil && found[0].Series.Count == 2
	})
	for _, to := range []int{60, 70} {
		c.Event(rds, nil, autopilot.Event{Reason: "GrowVolume", Action: "GrowVolume", Note: fmt.Sprintf("to %d GB", to), Change: true})
		grow(to)
	}
	eventually(t, "each change has an event", func() bool { return len(k.events(t, "Rds")) == 3 })
}
