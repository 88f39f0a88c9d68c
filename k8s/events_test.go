// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// policy is an admission policy that refuses each new RdsAutopilot.
type policy struct{ http.RoundTripper }

func (p policy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/rdsautopilots") {
		return p.RoundTripper.RoundTrip(r)
	}
	const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"denied by policy: no owner label","code":403}`
	return &http.Response{StatusCode: http.StatusForbidden, Request: r, Body: io.NopCloser(strings.NewReader(refusal)),
		Header: http.Header{"Content-Type": {"application/json"}}}, nil
}

func TestRefusedRdsAutopilotIsAWarningOnTheRds(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	k.service.Wrap(func(rt http.RoundTripper) http.RoundTripper { return policy{rt} })
	c := k.connect(t)
	run(t, c)
	if err := c.CreateAutopilot(t.Context(), k.createRds(t, c, "shop")); err == nil {
		t.Fatal("it is created")
	}
	client, err := kubernetes.NewForConfig(k.admin)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Rds has a Warning with the text of the policy", func() bool {
		list, err := client.EventsV1().Events(k.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Regarding.Kind == "Rds" && list.Items[0].Type == "Warning" &&
			strings.Contains(list.Items[0].Note, "denied by policy: no owner label")
	})
}

func TestEventsOfTheSameFactAreMergedAndThoseOfChangesAreNot(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t)
	run(t, c)
	a := k.createAutopilot(t, c, "shop")
	rds, err := c.LiveTarget(t.Context(), k.namespace, "shop")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(k.admin)
	if err != nil {
		t.Fatal(err)
	}
	events := func(kind string) (found []eventsv1.Event) {
		list, err := client.EventsV1().Events(k.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == kind {
				found = append(found, e)
			}
		}
		return found
	}
	grow := func(to int) {
		t.Helper()
		if rds, err = c.PatchRds(t.Context(), rds, toSize(to)); err != nil {
			t.Fatal(err)
		}
	}

	c.Event(rds, nil, autopilot.Event{Reason: "StorageFull", Action: "None", Note: "100 % sure"})
	eventually(t, "the Rds has an event", func() bool { return len(events("Rds")) == 1 })
	e := events("Rds")[0]
	if e.ReportingController != "rds-autopilot" || e.Type != "Normal" || e.Reason != "StorageFull" || e.Action != "None" ||
		e.Note != "100 % sure" || e.Regarding.Name != "shop" || e.Regarding.UID != rds.UID || e.Regarding.APIVersion != "otc.mcsps.de/v1alpha1" {
		t.Errorf("event %+v", e)
	}
	c.Event(nil, a, autopilot.Event{Warning: true, Reason: "CapReached", Action: "None", Note: strings.Repeat("ü", 2000)})
	eventually(t, "the RdsAutopilot has an event", func() bool { return len(events("RdsAutopilot")) == 1 })
	if e := events("RdsAutopilot")[0]; e.Type != "Warning" || len(e.Note) > 1024 || e.Regarding.UID != a.UID {
		t.Errorf("event %+v", e)
	}

	grow(50) // the Rds has another version, and the event is still the same
	c.Event(rds, nil, autopilot.Event{Reason: "StorageFull", Action: "None", Note: "again"})
	eventually(t, "the event counts two", func() bool {
		found := events("Rds")
		return len(found) == 1 && found[0].Series != nil && found[0].Series.Count == 2
	})
	for _, to := range []int{60, 70} {
		c.Event(rds, nil, autopilot.Event{Reason: "GrowVolume", Action: "GrowVolume", Note: fmt.Sprintf("to %d GB", to), Change: true})
		grow(to)
	}
	eventually(t, "each change has an event", func() bool { return len(events("Rds")) == 3 })
}
