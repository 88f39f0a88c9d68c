// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"fmt"
	"hash/crc32"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) post(r request, body []byte) ([]byte, error) {
	object, err := decode(r.kind, body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.create(r, object)
}

func (s *Server) put(r request, body []byte) ([]byte, error) {
	next, err := decode(r.kind, body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, ok := s.objects[r.key()]
	if !ok {
		return nil, notFound(r.kind, r.name)
	}
	return s.update(r, live, next)
}

func (s *Server) patch(r request, body []byte) ([]byte, error) {
	patchType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, badRequest("read the content type: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, ok := s.objects[r.key()]
	if !ok {
		return nil, notFound(r.kind, r.name)
	}
	next := live.object.DeepCopy()
	switch of := types.PatchType(patchType); {
	case of == types.MergePatchType, of == types.StrategicMergePatchType && !r.kind.custom: // no list here has keys, so both are the same
		var changes map[string]any
		if err := json.Unmarshal(body, &changes); err != nil {
			return nil, badRequest("read the merge patch: %v", err)
		}
		merge(next.Object, changes)
		err = r.kind.setKind(next)
	case of == types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, badRequest("read the JSON patch: %v", err)
		}
		patched, err := operations.Apply(live.encoded)
		if err != nil {
			return nil, unprocessable(err)
		}
		if next, err = decode(r.kind, patched); err != nil {
			return nil, err
		}
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType, Message: "patches of type " + patchType + " are not supported",
		}}
	}
	if err != nil {
		return nil, err
	}
	return s.update(r, live, next)
}

// merge applies a merge patch (RFC 7386). It works on decoded values, because most status writes are merge patches and
// encoding them twice would take most of their time.
func merge(into, changes map[string]any) {
	for name, value := range changes {
		switch inner, deeper := value.(map[string]any); {
		case value == nil:
			delete(into, name)
		case deeper:
			old, ok := into[name].(map[string]any)
			if !ok {
				old = map[string]any{}
				into[name] = old
			}
			merge(old, inner)
		default:
			into[name] = value
		}
	}
}

// create stores a new object. The caller holds s.mu.
func (s *Server) create(r request, object *unstructured.Unstructured) ([]byte, error) {
	if object.GetName() == "" && object.GetGenerateName() != "" {
		object.SetName(fmt.Sprintf("%s%05x", object.GetGenerateName(), s.revision&0xfffff))
	}
	// The recorder derives the name of an event from the time. In a bubble, two events may have the same time.
	for r.kind.resource == "events" && s.objects[objectKey{r.kind.key, r.namespace, object.GetName()}] != nil {
		object.SetName(object.GetName() + "x")
	}
	r.name = object.GetName()
	switch {
	case r.name == "":
		return nil, apierrors.NewInvalid(r.kind.gvk.GroupKind(), "", field.ErrorList{
			field.Required(field.NewPath("metadata", "name"), "name or generateName is required"),
		})
	case r.kind.namespaced && object.GetNamespace() != "" && object.GetNamespace() != r.namespace:
		return nil, badRequest("the namespace of the provided object does not match the namespace sent on the request")
	case s.objects[r.key()] != nil:
		return nil, apierrors.NewAlreadyExists(r.kind.groupResource(), r.name)
	case object.GetResourceVersion() != "":
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "resourceVersion should not be set on objects to be created",
		}}
	}
	if r.kind.namespaced {
		namespaces := s.kinds["/v1/namespaces"]
		if s.objects[objectKey{namespaces.key, "", r.namespace}] == nil {
			return nil, notFound(namespaces, r.namespace)
		}
		object.SetNamespace(r.namespace)
	}
	if r.kind.status {
		delete(object.Object, "status")
	}
	key := r.key()
	s.created[key]++
	object.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012d",
		crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %v %d", s.options.Seed, key, s.created[key])), s.created[key])))
	object.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	object.SetDeletionTimestamp(nil)
	if r.kind.custom {
		object.SetGeneration(1)
	}
	if err := s.complete(r, nil, object); err != nil {
		return nil, err
	}
	none, _ := untyped{}.New(r.kind.gvk) // never fails
	return s.store(r, "ADDED", r.kind.track(r, none, object))
}

// complete calls Admit, drops unknown fields and sets defaults before an object is stored. The caller holds s.mu.
func (s *Server) complete(r request, old, object *unstructured.Unstructured) error {
	if s.admit != nil {
		if err := s.admit(Write{Manager: r.manager, Subresource: r.subresource, Old: old, New: object}); err != nil {
			return apierrors.NewForbidden(r.kind.groupResource(), r.name, err)
		}
	}
	if r.kind.schema == nil {
		return nil
	}
	for name, value := range object.Object {
		if name == "metadata" || name == "kind" || name == "apiVersion" {
			continue
		}
		holder, of := map[string]any{name: value}, schemaOf(r.kind.schema, name)
		prune(holder, of)
		withDefaults(holder, of)
		if _, kept := holder[name]; !kept {
			delete(object.Object, name)
		}
	}
	withDefaults(object.Object, withoutMetadata(r.kind.schema))
	return nil
}

// schemaOf returns the part of an object's schema that describes one of its fields.
func schemaOf(of map[string]any, name string) map[string]any {
	properties, _ := of["properties"].(map[string]any)
	only := map[string]any{"x-kubernetes-preserve-unknown-fields": of["x-kubernetes-preserve-unknown-fields"]}
	if s, ok := properties[name]; ok {
		only["properties"] = map[string]any{name: s}
	}
	return only
}

// withoutMetadata returns the schema of an object without its metadata.
func withoutMetadata(of map[string]any) map[string]any {
	properties := map[string]any{}
	all, _ := of["properties"].(map[string]any)
	for name, s := range all {
		if name != "metadata" {
			properties[name] = s
		}
	}
	return map[string]any{"properties": properties}
}

// update stores next in place of live. The caller holds s.mu.
func (s *Server) update(r request, live *stored, next *unstructured.Unstructured) ([]byte, error) {
	old := live.object
	switch {
	case next.GetName() != r.name || next.GetNamespace() != r.namespace:
		return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", next.GetName(), r.name)
	case next.GetResourceVersion() != "" && next.GetResourceVersion() != old.GetResourceVersion(),
		next.GetUID() != "" && next.GetUID() != old.GetUID():
		return nil, conflict(r.kind, r.name)
	case next.GetResourceVersion() == "" && r.Method == http.MethodPut && r.kind.custom:
		return nil, apierrors.NewInvalid(r.kind.gvk.GroupKind(), r.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"),
		})
	}
	if r.subresource == "status" {
		fields := next.GetManagedFields()
		next.Object = replaced(old.Object, "status", next.Object)
		next.Object = replaced(next.Object, "metadata", runtime.DeepCopyJSON(map[string]any{"metadata": old.Object["metadata"]}))
		next.SetManagedFields(fields)
	} else if r.kind.status {
		next.Object = replaced(next.Object, "status", old.Object)
	}
	next.SetUID(old.GetUID())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetGeneration(old.GetGeneration())
	if err := s.complete(r, old, next); err != nil {
		return nil, err
	}
	if r.kind.custom && r.subresource == "" && !reflect.DeepEqual(content(old), content(next)) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	next = r.kind.track(r, old, next)
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		return s.remove(r, old, next)
	}
	if reflect.DeepEqual(content(old), content(next)) && reflect.DeepEqual(untimed(old), untimed(next)) {
		return live.encoded, nil
	}
	return s.store(r, "MODIFIED", next)
}

// track returns next with its managed fields after the request, derived from those of old.
func (k *kind) track(r request, old runtime.Object, next *unstructured.Unstructured) *unstructured.Unstructured {
	if k.untracked {
		next.SetManagedFields(nil)
		return next
	}
	manager := k.fields
	if r.subresource == "status" {
		manager = k.statusFields
	}
	return manager.UpdateNoErrors(old.DeepCopyObject(), next, r.manager).(*unstructured.Unstructured)
}

// replaced returns a copy of the object with one value of another one. All other values are shared.
func replaced(object map[string]any, name string, from map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, name)
	if value, has := from[name]; has {
		object[name] = value
	}
	return object
}

// content returns all fields of an object except its metadata.
func content(u *unstructured.Unstructured) map[string]any {
	rest := map[string]any{}
	for name, value := range u.Object {
		if name != "metadata" {
			rest[name] = value
		}
	}
	return rest
}

// untimed returns the metadata of an object without the times of its managed fields. A write that would change only
// these times is not stored.
func untimed(u *unstructured.Unstructured) map[string]any {
	object := runtime.DeepCopyJSON(map[string]any{"metadata": u.Object["metadata"]})
	metadata, _ := object["metadata"].(map[string]any)
	fields, _ := metadata["managedFields"].([]any)
	for _, f := range fields {
		delete(f.(map[string]any), "time")
	}
	return metadata
}

// store stores an object, or deletes it, and adds the change to the log. The caller holds s.mu.
func (s *Server) store(r request, event string, object *unstructured.Unstructured) ([]byte, error) {
	s.revision++
	object.SetGroupVersionKind(r.kind.gvk)
	object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	encoded, err := encode(object)
	if err != nil {
		return nil, err
	}
	if event == "DELETED" {
		delete(s.objects, r.key())
	} else {
		s.objects[r.key()] = &stored{object: object, encoded: encoded, revision: s.revision}
	}
	s.record(change{revision: s.revision, at: time.Now(), key: r.key(), event: event, encoded: encoded})
	return encoded, nil
}

// remove deletes an object. Watchers get it as it was last stored. The answer is the object as the request changed it.
func (s *Server) remove(r request, last, changed *unstructured.Unstructured) ([]byte, error) {
	if _, err := s.store(r, "DELETED", last.DeepCopy()); err != nil {
		return nil, err
	}
	return encode(changed)
}

func (s *Server) delete(r request, body []byte) ([]byte, error) {
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, badRequest("read the options: %v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, ok := s.objects[r.key()]
	if !ok {
		return nil, notFound(r.kind, r.name)
	}
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != live.object.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != live.object.GetResourceVersion()) {
		return nil, conflict(r.kind, r.name)
	}
	next := live.object.DeepCopy()
	if len(next.GetFinalizers()) == 0 {
		return s.remove(r, live.object, next)
	}
	if next.GetDeletionTimestamp() != nil {
		return live.encoded, nil
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	next.SetDeletionTimestamp(&now)
	next.SetDeletionGracePeriodSeconds(new(int64))
	if r.kind.custom {
		next.SetGeneration(next.GetGeneration() + 1)
	}
	return s.store(r, "MODIFIED", next)
}

// decode decodes an object of a kind. Whole numbers become int64.
func decode(k *kind, body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, badRequest("read the object: %v", err)
	}
	if u.Object == nil {
		return nil, badRequest("the object is empty")
	}
	return u, k.setKind(u)
}

// setKind sets the kind of an object that has none. It returns an error if the object is of another kind.
func (k *kind) setKind(u *unstructured.Unstructured) error {
	if gvk := u.GroupVersionKind(); gvk != k.gvk && !gvk.Empty() {
		return badRequest("the object is a %s, want a %s", gvk, k.gvk)
	}
	u.SetGroupVersionKind(k.gvk)
	return nil
}
