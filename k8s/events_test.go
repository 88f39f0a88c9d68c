// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/autopilot"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
