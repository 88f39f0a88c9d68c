package k8s

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const maxNote = 1024 // bytes; the API server refuses a longer one

// recorder queues events and sends them in the background; a full queue drops them. Those that are equal in all but the
// note within six minutes become one with a count and the first one's note.
type recorder struct {
	broadcaster events.EventBroadcaster
	events.EventRecorder
}

func newRecorder(client eventsv1client.EventsV1Interface) *recorder {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	return &recorder{broadcaster: broadcaster, EventRecorder: broadcaster.NewRecorder(nil, self)}
}

func (r *recorder) start(ctx context.Context) error {
	return r.broadcaster.StartRecordingToSinkWithContext(ctx)
}

func (r *recorder) shutdown() { r.broadcaster.Shutdown() }

// Event is something that people are told.
type Event struct {
	Type   string // Normal or Warning
	Reason string
	Action string
	Note   string
	// Single keeps it from being folded into an equal one: two growths in a row are two events.
	Single bool
}

// RdsEvent tells people who look at the Rds. It does not wait and cannot fail: an event that is lost is in the log and in
// the status as well. Nothing is sent before Run.
func (c *Cluster) RdsEvent(rds *otcv1.Rds, e Event) {
	c.event(otcv1.GroupVersion(), otcv1.Kind, &rds.ObjectMeta, e)
}

// AutopilotEvent is RdsEvent for the RdsAutopilot.
func (c *Cluster) AutopilotEvent(a *autopilotv1.RdsAutopilot, e Event) {
	c.event(autopilotv1.GroupVersion(), autopilotv1.Kind, &a.ObjectMeta, e)
}

func (c *Cluster) event(gv schema.GroupVersion, kind string, m *metav1.ObjectMeta, e Event) {
	regarding := &corev1.ObjectReference{
		APIVersion: gv.String(), Kind: kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID,
	}
	if e.Single { // no two events are about the same version
		regarding.ResourceVersion = m.ResourceVersion
	}
	c.events.Eventf(regarding, nil, e.Type, e.Reason, e.Action, "%s", capped(e.Note, maxNote))
}

// capped cuts text to at most limit bytes of whole characters.
func capped(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
