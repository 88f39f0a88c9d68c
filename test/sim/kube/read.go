// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
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

// list returns the objects, in pages if the request has a limit. A write between two pages shows in the second one.
func (s *Server) list(r request) ([]byte, error) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	if query.Get("resourceVersion") == "0" {
		limit = 0 // an API server answers it from its cache, without pages
	}
	after, err := base64.RawURLEncoding.DecodeString(query.Get("continue"))
	if err != nil {
		return nil, badRequest("continue key is not valid: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of(r)
	if len(after) > 0 {
		all = slices.DeleteFunc(all, func(k objectKey) bool { return k.path() <= string(after) })
	}
	next := ""
	if left := len(all) - limit; limit > 0 && left > 0 {
		all = all[:limit]
		next = fmt.Sprintf(`,"continue":%q,"remainingItemCount":%d`, base64.RawURLEncoding.EncodeToString([]byte(all[limit-1].path())), left)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"%s},"items":[`, r.kind.gvk.Kind, r.kind.gvk.GroupVersion().String(), s.revision, next)
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
