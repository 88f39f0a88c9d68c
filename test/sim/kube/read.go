// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s *Server) get(r request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[r.key()]
	if !ok {
		return nil, notFound(r.kind, r.name)
	}
	return found.encoded, nil
}

// Objects returns the stored objects of a resource, ordered by namespace and name. They must not be modified.
func (s *Server) Objects(resource schema.GroupVersionResource) (all []*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[resource.Group+"/"+resource.Version+"/"+resource.Resource]
	for _, key := range s.of(request{kind: k}) {
		all = append(all, s.objects[key].object)
	}
	return all
}

// list returns all objects, also if the request has a limit, as an API server does from its cache.
func (s *Server) list(r request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of(r)
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`, r.kind.gvk.Kind, r.kind.gvk.GroupVersion().String(), s.revision)
	for i, k := range all {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(s.objects[k].encoded)
	}
	out.WriteString("]}")
	return out.Bytes(), nil
}

// of returns the keys of the objects that a list or watch selects, in order. The caller holds s.mu.
func (s *Server) of(r request) (keys []objectKey) {
	for k := range s.objects {
		if r.selects(k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b objectKey) int { return strings.Compare(a.path(), b.path()) })
	return keys
}

// selects reports whether an object has the kind, namespace and name of a list or watch.
func (r request) selects(k objectKey) bool {
	return k.kind == r.kind.key && (r.namespace == "" || r.namespace == k.namespace) && (r.only == "" || r.only == k.name)
}

func (k objectKey) path() string { return k.namespace + "/" + k.name }
