// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	maxNote       = 1024 // bytes; the API server refuses a longer one
	eventsAtATime = 1    // requests under way
	eventsQueued  = 2000
	foldedAfter   = 100 * time.Millisecond // after which the library has folded an event into another one, and sends nothing
)

// recorder queues events and sends them in the background; a full queue drops them. Those that are equal in all but the
// note within six minutes become one with a count and the first one's note.
type recorder struct {
	library events.EventBroadcaster
	events.EventRecorder
	sink  *pacedSink
	queue chan *event
}

// event is one that waits.
type event struct {
	regarding                  corev1.ObjectReference
	kind, reason, action, note string
}

func newRecorder(client eventsv1client.EventsV1Interface) *recorder {
	sink := &pacedSink{&events.EventSinkImpl{Interface: client}, semaphore.NewWeighted(eventsAtATime), make(chan struct{}, 1)}
	library := events.NewBroadcaster(sink)
	return &recorder{library: library, EventRecorder: library.NewRecorder(nil, self), sink: sink, queue: make(chan *event, eventsQueued)}
}

// start sends events until ctx ends. The library has goroutines and copies for each that it is given: it gets the next one when a
// request may begin. In a storm of alarms, hundreds would take megabytes.
func (r *recorder) start(ctx context.Context) error {
	if err := r.library.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-r.queue:
				if r.sink.wait(ctx) == nil {
					r.Eventf(&e.regarding, nil, e.kind, e.reason, e.action, "%s", e.note)
				}
			}
			select {
			case <-r.sink.begun:
			case <-ctx.Done():
			case <-time.After(foldedAfter):
			}
		}
	}()
	return nil
}

func (r *recorder) shutdown() { r.library.Shutdown() }

// pacedSink sends one event after the other: hundreds of requests would slow down the patches that they tell of.
type pacedSink struct {
	events.EventSink
	places *semaphore.Weighted
	begun  chan struct{} // a request waits for a place, or has one
}

// wait returns once there is a place. Its error is the context's.
func (s *pacedSink) wait(ctx context.Context) error {
	if err := s.places.Acquire(ctx, 1); err != nil {
		return err
	}
	s.places.Release(1)
	return nil
}

func (s *pacedSink) begin(ctx context.Context) error {
	select {
	case s.begun <- struct{}{}:
	default:
	}
	return s.places.Acquire(ctx, 1)
}

// Create waits for a place.
func (s *pacedSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.places.Release(1)
	return s.EventSink.Create(ctx, e)
}

// Patch waits for a place.
func (s *pacedSink) Patch(ctx context.Context, e *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.places.Release(1)
	return s.EventSink.Patch(ctx, e, patch)
}

// Event is for people who look at the Rds or at its RdsAutopilot, whichever is there. It does not wait and cannot fail: an event
// that is lost is in the log and in the status as well. Nothing is sent before Run.
func (c *Cluster) Event(t *autopilot.Target, a *autopilotv1.RdsAutopilot, e autopilot.Event) {
	if t != nil && !t.NoRds {
		c.event(corev1.ObjectReference{
			APIVersion: otcv1.GroupVersion().String(), Kind: otcv1.Kind, Namespace: t.Namespace, Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion,
		}, e)
	}
	if a != nil {
		c.event(corev1.ObjectReference{
			APIVersion: autopilotv1.GroupVersion().String(), Kind: autopilotv1.Kind, Namespace: a.Namespace, Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion,
		}, e)
	}
}

func (c *Cluster) event(regarding corev1.ObjectReference, e autopilot.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if !e.Change { // equal ones are folded; no two changes are about the same version
		regarding.ResourceVersion = ""
	}
	select {
	case c.events.queue <- &event{regarding, kind, e.Reason, e.Action, truncated(e.Note, maxNote)}:
	default:
	}
}

// truncated cuts text to at most limit bytes of whole characters.
func truncated(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
