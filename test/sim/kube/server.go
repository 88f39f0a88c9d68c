// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/rest"
)

// Options of a Server.
type Options struct {
	// CRDs are files with the CustomResourceDefinitions to serve.
	CRDs []string
	// Seed makes the uids of a cluster different from those of another one.
	Seed string
	// WatchLag is how long after a write its watchers see it.
	WatchLag time.Duration
	// WriteLatency is how long a request takes that writes.
	WriteLatency time.Duration
	// Untracked are resources without managed fields, which cost most of a write. Server-side apply of them does not work.
	Untracked []string
}

// Write is a create or update that is about to be stored.
type Write struct {
	Manager, Subresource string
	Old, New             *unstructured.Unstructured // Old is nil for a create, and must not be modified
}

// Admit sees every create and update before it is stored. It may alter New, or refuse it; it must not ask the server.
type Admit func(Write) error

// Server is one cluster. Its methods may be called from several goroutines.
type Server struct {
	options   Options
	kinds     map[string]*kind // by group/version/resource
	converter managedfields.TypeConverter

	mu        sync.Mutex
	latency   time.Duration
	admit     Admit
	revision  int64
	objects   map[objectKey]*stored
	born      map[objectKey]int // how many had that name so far
	log       []change          // what watchers are to see, oldest first
	forgotten int64             // the newest revision that is not in the log any more
	changed   chan struct{}     // closed at the next change
	cut       chan struct{}     // closed to end all watches
}

type objectKey struct{ kind, namespace, name string }

// stored is an object with its encoding.
type stored struct {
	object   *unstructured.Unstructured
	encoded  []byte
	revision int64
}

// New returns a cluster with the namespaces that every cluster has.
func New(o Options) (*Server, error) {
	s := &Server{
		options: o, latency: o.WriteLatency, kinds: builtInKinds(), converter: managedfields.NewDeducedTypeConverter(),
		objects: map[objectKey]*stored{}, born: map[objectKey]int{}, changed: make(chan struct{}), cut: make(chan struct{}),
	}
	for _, file := range o.CRDs {
		if err := s.readCRD(file); err != nil {
			return nil, err
		}
	}
	for _, k := range s.kinds {
		if err := k.prepare(s.converter); err != nil {
			return nil, err
		}
		k.untracked = slices.Contains(o.Untracked, k.resource)
	}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic} {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if _, err := s.create(request{kind: s.kinds["/v1/namespaces"], manager: "kube-apiserver"}, namespace); err != nil {
			return nil, fmt.Errorf("make namespace %s: %w", name, err)
		}
	}
	return s, nil
}

// Config is access to the server with all rights.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "http://kubernetes.invalid", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// SetAdmit sets what sees all writes from now on; nil admits all as they are.
func (s *Server) SetAdmit(a Admit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admit = a
}

// SetWriteLatency changes how long a request takes that writes.
func (s *Server) SetWriteLatency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// Compact forgets the changes so far: a watch from before them is answered that it is expired.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.forgotten = nil, s.revision
}

// request is what a path and its query ask for.
type request struct {
	*http.Request
	kind                         *kind
	namespace, name, subresource string
	manager                      string
	only                         string          // name of the one object that is listed or watched; empty means all
	labels                       labels.Selector // of a list; nil selects all
}

func (r request) key() objectKey { return objectKey{r.kind.key, r.namespace, r.name} }

// ServeHTTP answers like an API server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer, ok := s.discover(r.URL.Path); ok && r.Method == http.MethodGet {
		writeJSON(w, answer)
		return
	}
	req, err := s.parse(r)
	if err != nil {
		reply(w, err)
		return
	}
	if r.Method == http.MethodGet && req.name == "" && r.URL.Query().Get("watch") != "" && r.URL.Query().Get("watch") != "false" {
		s.watch(w, req)
		return
	}
	if r.Method != http.MethodGet {
		s.mu.Lock()
		latency := s.latency
		s.mu.Unlock()
		time.Sleep(latency)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 3<<20))
	if err != nil {
		reply(w, badRequest("read the body: %v", err))
		return
	}
	status := http.StatusOK
	var answer []byte
	switch {
	case r.Method == http.MethodGet && req.name == "":
		answer, err = s.list(req)
	case r.Method == http.MethodGet:
		answer, err = s.get(req)
	case r.Method == http.MethodPost && req.name == "":
		status = http.StatusCreated
		answer, err = s.post(req, body)
	case r.Method == http.MethodPut && req.name != "":
		answer, err = s.put(req, body)
	case r.Method == http.MethodPatch && req.name != "":
		answer, err = s.patch(req, body)
	case r.Method == http.MethodDelete && req.name != "":
		answer, err = s.delete(req, body)
	default:
		err = methodNotAllowed(req.kind, r.Method)
	}
	if err == nil && req.name != "" && strings.HasPrefix(r.Header.Get("Accept"), metadataAlone) {
		answer, err = partial(answer)
	}
	if err != nil {
		reply(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer) // fails only if the client has left
}

// parse reads /api/v1/… or /apis/group/version/…, with or without a namespace.
func (s *Server) parse(r *http.Request) (request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[2:]
	default:
		return request{}, errNoSuchPath
	}
	req := request{Request: r, manager: managerOf(r)}
	version, parts := parts[0], parts[1:]
	if len(parts) > 2 && parts[0] == "namespaces" && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		req.namespace, parts = parts[1], parts[2:]
	}
	k, ok := s.kinds[group+"/"+version+"/"+parts[0]]
	if !ok {
		return request{}, errNoSuchPath
	}
	req.kind = k
	if len(parts) > 1 {
		req.name = parts[1]
	}
	if len(parts) > 2 {
		req.subresource = parts[2]
	}
	switch {
	case req.subresource != "" && (req.subresource != "status" || !k.status):
		return request{}, notFound(k, req.name)
	case len(parts) > 3, k.namespaced && req.name != "" && req.namespace == "":
		return request{}, errNoSuchPath
	}
	return req, req.readSelectors()
}

// readSelectors accepts what clients of this project use: one name, and labels of a list.
func (r *request) readSelectors() (err error) {
	query := r.URL.Query()
	if text := query.Get("fieldSelector"); text != "" {
		selector, err := fields.ParseSelector(text)
		if err != nil {
			return badRequest("read the field selector: %v", err)
		}
		name, ok := selector.RequiresExactMatch(metav1.ObjectNameField)
		if !ok || len(selector.Requirements()) != 1 {
			return badRequest("field selector %q: only metadata.name=NAME is supported", text)
		}
		r.only = name
	}
	if text := query.Get("labelSelector"); text != "" {
		if query.Get("watch") != "" {
			return badRequest("label selectors of a watch are not supported")
		}
		if r.labels, err = labels.Parse(text); err != nil {
			return badRequest("read the label selector: %v", err)
		}
	}
	return nil
}

// managerOf returns the field manager of a write: the one in the query, or else the name of the client's program.
func managerOf(r *http.Request) string {
	if m := r.URL.Query().Get("fieldManager"); m != "" {
		return m
	}
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name
}

// metadataAlone is how a client asks for no more of an object than its metadata.
const metadataAlone = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

func partial(object []byte) ([]byte, error) {
	var p metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &p); err != nil {
		return nil, fmt.Errorf("read the metadata of an answer: %w", err)
	}
	p.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return json.Marshal(p)
}

func encode(object *unstructured.Unstructured) ([]byte, error) {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return data, nil
}
