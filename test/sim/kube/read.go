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
	"k8s.io/apimachinery/pkg/labels"
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

// Objects returns the objects of a resource as they are stored, in order. They must not be modified.
func (s *Server) Objects(resource schema.GroupVersionResource) (all []*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[resource.Group+"/"+resource.Version+"/"+resource.Resource]
	for _, key := range s.of(request{kind: k}) {
		all = append(all, s.objects[key].object)
	}
	return all
}

// list answers in pages, if asked to. What was written between two pages is in the second one.
func (s *Server) list(r request) ([]byte, error) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	if query.Get("resourceVersion") == "0" {
		limit = 0 // it comes from the server's cache, as a whole
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
	for k, o := range s.objects {
		if r.selects(k) && (r.labels == nil || r.labels.Matches(labels.Set(o.object.GetLabels()))) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b objectKey) int { return strings.Compare(a.path(), b.path()) })
	return keys
}

// selects reports whether an object is of the kind, namespace and name that a list or watch asks for.
func (r request) selects(k objectKey) bool {
	return k.kind == r.kind.key && (r.namespace == "" || r.namespace == k.namespace) && (r.only == "" || r.only == k.name)
}

func (k objectKey) path() string { return k.namespace + "/" + k.name }
