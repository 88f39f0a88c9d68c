// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
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
	"sigs.k8s.io/yaml"
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
	return s.update(r, live, next, nil)
}

func (s *Server) patch(r request, body []byte) ([]byte, error) {
	patchType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, badRequest("read the content type: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, ok := s.objects[r.key()]
	if types.PatchType(patchType) == types.ApplyPatchType {
		return s.apply(r, live, body)
	}
	if !ok {
		return nil, notFound(r.kind, r.name)
	}
	next := live.object.DeepCopy()
	switch of := types.PatchType(patchType); {
	case of == types.MergePatchType, of == types.StrategicMergePatchType && !r.kind.custom: // the same where no list has keys
		var changes map[string]any
		if err := json.Unmarshal(body, &changes); err != nil {
			return nil, badRequest("read the merge patch: %v", err)
		}
		merge(next.Object, changes)
		err = r.kind.admits(next)
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
	return s.update(r, live, next, nil)
}

// merge applies a merge patch (RFC 7386). It does so without text: most writes of a status come this way.
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

// apply is server-side apply; live is nil where the object is to be created.
func (s *Server) apply(r request, live *stored, body []byte) ([]byte, error) {
	data, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil, badRequest("read what is to be applied: %v", err)
	}
	asked, err := decode(r.kind, data)
	if err != nil {
		return nil, err
	}
	asked.SetNamespace(r.namespace)
	force := r.URL.Query().Get("force") == "true"
	manager := r.kind.fields
	if r.subresource == "status" {
		manager = r.kind.statusFields
	}
	if live == nil {
		none, _ := untyped{}.New(r.kind.gvk) // never fails
		next, err := manager.Apply(none, asked, r.manager, force)
		if err != nil {
			return nil, err
		}
		return s.create(r, next.(*unstructured.Unstructured))
	}
	next, err := manager.Apply(live.object.DeepCopy(), asked, r.manager, force)
	if err != nil {
		return nil, err
	}
	object := next.(*unstructured.Unstructured)
	return s.update(r, live, object, object.GetManagedFields())
}

// create stores a new object; s.mu is held.
func (s *Server) create(r request, object *unstructured.Unstructured) ([]byte, error) {
	if object.GetName() == "" && object.GetGenerateName() != "" {
		object.SetName(fmt.Sprintf("%s%05x", object.GetGenerateName(), s.revision&0xfffff))
	}
	// The name of an event is made of the time, which stands still in a bubble.
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
	s.born[key]++
	object.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012d",
		crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %v %d", s.options.Seed, key, s.born[key])), s.born[key])))
	object.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	object.SetDeletionTimestamp(nil)
	if r.kind.custom {
		object.SetGeneration(1)
	}
	if err := s.settle(r, nil, object); err != nil {
		return nil, err
	}
	none, _ := untyped{}.New(r.kind.gvk) // never fails
	return s.store(r, "ADDED", r.kind.track(r, none, object))
}

// settle completes an object before it is stored, for every writer. The caller holds s.mu.
func (s *Server) settle(r request, old, object *unstructured.Unstructured) error {
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
		holder, of := map[string]any{name: value}, onlyProperty(r.kind.schema, name)
		prune(holder, of)
		withDefaults(holder, of)
		if _, kept := holder[name]; !kept {
			delete(object.Object, name)
		}
	}
	withDefaults(object.Object, withoutMetadata(r.kind.schema))
	return nil
}

func onlyProperty(of map[string]any, name string) map[string]any {
	properties, _ := of["properties"].(map[string]any)
	only := map[string]any{"x-kubernetes-preserve-unknown-fields": of["x-kubernetes-preserve-unknown-fields"]}
	if s, ok := properties[name]; ok {
		only["properties"] = map[string]any{name: s}
	}
	return only
}

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

// update stores what next makes of live, with the managed fields given or else derived; s.mu is held.
func (s *Server) update(r request, live *stored, next *unstructured.Unstructured, managed []metav1.ManagedFieldsEntry) ([]byte, error) {
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
	if err := s.settle(r, old, next); err != nil {
		return nil, err
	}
	if r.kind.custom && r.subresource == "" && !reflect.DeepEqual(content(old), content(next)) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	if managed == nil {
		next = r.kind.track(r, old, next)
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		return s.remove(r, old, next)
	}
	if reflect.DeepEqual(content(old), content(next)) && reflect.DeepEqual(untimed(old), untimed(next)) {
		return live.encoded, nil
	}
	return s.store(r, "MODIFIED", next)
}

// track returns next with the managed fields that the request makes of those of old.
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

// content is all of an object but its metadata.
func content(u *unstructured.Unstructured) map[string]any {
	rest := map[string]any{}
	for name, value := range u.Object {
		if name != "metadata" {
			rest[name] = value
		}
	}
	return rest
}

// untimed is the metadata of an object without the times of its managed fields: a write that changes only those is none.
func untimed(u *unstructured.Unstructured) map[string]any {
	object := runtime.DeepCopyJSON(map[string]any{"metadata": u.Object["metadata"]})
	metadata, _ := object["metadata"].(map[string]any)
	fields, _ := metadata["managedFields"].([]any)
	for _, f := range fields {
		delete(f.(map[string]any), "time")
	}
	return metadata
}

// store puts an object in its place and lets the watchers know; s.mu is held.
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

// remove lets watchers know of the object as it was last stored, and answers with what the request made of it.
func (s *Server) remove(r request, last, asked *unstructured.Unstructured) ([]byte, error) {
	if _, err := s.store(r, "DELETED", last.DeepCopy()); err != nil {
		return nil, err
	}
	return encode(asked)
}

func (s *Server) delete(r request, body []byte) ([]byte, error) {
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, badRequest("read the options: %v", err)
		}
	}
	policy := metav1.DeletionPropagation(r.URL.Query().Get("propagationPolicy"))
	if options.PropagationPolicy != nil {
		policy = cmp.Or(policy, *options.PropagationPolicy)
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
	if policy == metav1.DeletePropagationForeground && !slices.Contains(next.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		next.SetFinalizers(append(next.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
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

// decode reads an object of a kind, with whole numbers as such.
func decode(k *kind, body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, badRequest("read the object: %v", err)
	}
	if u.Object == nil {
		return nil, badRequest("the object is empty")
	}
	return u, k.admits(u)
}

// admits gives an object that names no kind this one, and refuses those of another.
func (k *kind) admits(u *unstructured.Unstructured) error {
	if gvk := u.GroupVersionKind(); gvk != k.gvk && !gvk.Empty() {
		return badRequest("the object is a %s, want a %s", gvk, k.gvk)
	}
	u.SetGroupVersionKind(k.gvk)
	return nil
}
