// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// trim drops from the metadata what nobody here reads. It names what stays, because kubectl copies the whole Rds,
// passwords included, into an annotation, and others may do likewise.
func trim(m *metav1.ObjectMeta) {
	annotations := maps.Clone(m.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !strings.HasPrefix(key, autopilotv1.Group+"/") })
	if len(annotations) == 0 {
		annotations = nil
	}
	*m = metav1.ObjectMeta{
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		Generation:        m.Generation,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
		OwnerReferences:   m.OwnerReferences,
		Finalizers:        m.Finalizers,
		Annotations:       annotations,
	}
}

// shrink takes from a status that was just decoded the memory that it does not need: the decoder leaves its lists room to grow, and
// makes a text of its own of each word that a long history repeats.
func shrink(s *autopilotv1.Status) {
	s.Decisions, s.Changes, s.FormerVolumes = slices.Clone(s.Decisions), slices.Clone(s.Changes), slices.Clone(s.FormerVolumes)
	words := make(map[string]string)
	for i := range s.Decisions {
		d := &s.Decisions[i]
		share(words, &d.Metric)
		share(words, &d.Action, &d.Reason, &d.From, &d.To, &d.ValuePercent, &d.Message)
	}
	for i := range s.Changes {
		c := &s.Changes[i]
		share(words, &c.Kind)
		share(words, &c.By)
		share(words, &c.From, &c.To, &c.ValuePercent)
		share(words, &c.Outcome)
		for j := range c.Metrics {
			share(words, &c.Metrics[j])
		}
	}
}

// share has equal texts be the same memory.
func share[T ~string](words map[string]string, texts ...*T) {
	for _, text := range texts {
		known, ok := words[string(*text)]
		if !ok {
			known = string(*text)
			words[known] = known
		}
		*text = T(known)
	}
}

// transform is trim and shrink for the informers, which call it before they store anything.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *otcv1.Rds:
		trim(&o.ObjectMeta)
	case *autopilotv1.RdsAutopilot:
		trim(&o.ObjectMeta)
		shrink(&o.Status)
	default:
		return nil, fmt.Errorf("unexpected object in a watch: %T", obj)
	}
	return obj, nil
}
