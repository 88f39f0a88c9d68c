package k8s_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestEventsAreOnBothObjects(t *testing.T) {
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	run(t, c)
	a := createAutopilot(t, c, ns, "shop")
	rds, err := c.GetRds(t.Context(), ns, "shop")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(shared.Cluster(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	events := func(kind string) (found []eventsv1.Event) {
		list, err := client.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{})
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

	c.RdsEvent(rds, corev1.EventTypeNormal, "GrowVolume", "GrowVolume", "from 40 to 50 GB, 100 % sure")
	eventually(t, "the Rds has an event", func() bool { return len(events("Rds")) == 1 })
	e := events("Rds")[0]
	if e.ReportingController != "rds-autopilot" || e.Type != "Normal" || e.Reason != "GrowVolume" || e.Action != "GrowVolume" ||
		e.Note != "from 40 to 50 GB, 100 % sure" || e.Regarding.Name != "shop" || e.Regarding.UID != rds.UID ||
		e.Regarding.APIVersion != "otc.mcsps.de/v1alpha1" {
		t.Errorf("event %+v", e)
	}

	c.AutopilotEvent(a, corev1.EventTypeWarning, "CapReached", "None", strings.Repeat("ü", 2000))
	eventually(t, "the RdsAutopilot has an event", func() bool { return len(events("RdsAutopilot")) == 1 })
	if e := events("RdsAutopilot")[0]; e.Type != "Warning" || len(e.Note) > 1024 || e.Regarding.UID != a.UID {
		t.Errorf("event %+v", e)
	}

	// The object has been written since; it is the same event all the same.
	if err := c.PatchVolumeSize(t.Context(), ns, "shop", rds.UID, 40, 50); err != nil {
		t.Fatal(err)
	}
	if rds, err = c.GetRds(t.Context(), ns, "shop"); err != nil {
		t.Fatal(err)
	}
	c.RdsEvent(rds, corev1.EventTypeNormal, "GrowVolume", "GrowVolume", "again")
	eventually(t, "the event counts two", func() bool {
		found := events("Rds")
		return len(found) == 1 && found[0].Series != nil && found[0].Series.Count == 2
	})
}
