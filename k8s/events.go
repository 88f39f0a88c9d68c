// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// maxNote is 1024 bytes because the API server refuses an event with a longer note.
const maxNote = 1024

// Event emits an event on the Rds and one on the RdsAutopilot. Either may be nil. It does not wait and returns no
// error, because log and status have the same information. The library sends nothing before Run. It merges events
// that differ only in their note within six minutes into one with a count and the first note.
func (c *Cluster) Event(t *autopilot.Target, a *autopilotv1.RdsAutopilot, e autopilot.Event) {
	if t != nil && !t.NoRds {
		c.event(corev1.ObjectReference{
			APIVersion: otcv1.GroupVersion().String(), Kind: otcv1.Kind, Namespace: t.Namespace, Name: t.Name, UID: t.UID,
			ResourceVersion: t.ResourceVersion,
		}, e)
	}
	if a != nil {
		c.event(corev1.ObjectReference{
			APIVersion: autopilotv1.GroupVersion().String(), Kind: autopilotv1.Kind, Namespace: a.Namespace, Name: a.Name,
			UID: a.UID, ResourceVersion: a.ResourceVersion,
		}, e)
	}
}

func (c *Cluster) event(regarding corev1.ObjectReference, e autopilot.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if !e.Change { // without the version, the library merges equal events; changes must stay separate
		regarding.ResourceVersion = ""
	}
	c.recorder.Eventf(&regarding, nil, kind, e.Reason, e.Action, "%s", shorten.To(e.Note, maxNote))
}
