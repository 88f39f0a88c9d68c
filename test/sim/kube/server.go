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
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/rest"
)

// Options of a Server.
type Options struct {
	// CRDs are files with the CustomResourceDefinitions to serve.
	CRDs []string
	// Seed makes the uids of a cluster different from those of another one.
	Seed string
	// WatchLag is the time from a write until watchers get its event.
	WatchLag time.Duration
	// Untracked are resources without managed fields, which cost most of a write.
	Untracked []string
}

// Write is a create or update before it is stored.
type Write struct {
	Manager, Subresource string
	Old, New             *unstructured.Unstructured // Old is nil for a create, and must not be modified
}

// Admit is called with every create and update before it is stored. It may modify New, or refuse the write by an error.
// It must not send requests to the server.
type Admit func(Write) error

// Server is one cluster. Its methods may be called from several goroutines.
type Server struct {
	options   Options
	kinds     map[string]*kind // by group/version/resource
	converter managedfields.TypeConverter

	mu        sync.Mutex
	admit     Admit
	revision  int64
	objects   map[objectKey]*stored
	created   map[objectKey]int // how many objects with that name were created
	log       []change          // for watchers, oldest first
	compacted int64             // the newest revision that is no longer in the log
	changed   chan struct{}     // closed at the next change
}

type objectKey struct{ kind, namespace, name string }

// stored is an object with its encoding.
type stored struct {
	object   *unstructured.Unstructured
	encoded  []byte
	revision int64
}

// New returns a cluster with the namespaces of every cluster.
func New(o Options) (*Server, error) {
	s := &Server{
		options: o, kinds: builtInKinds(), converter: managedfields.NewDeducedTypeConverter(),
		objects: map[objectKey]*stored{}, created: map[objectKey]int{}, changed: make(chan struct{}),
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
			return nil, fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return s, nil
}

// Config returns the configuration of a client with all rights.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "http://kubernetes.invalid", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// SetAdmit sets the function that is called with all further writes. If it is nil, all writes are stored as they are.
func (s *Server) SetAdmit(a Admit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admit = a
}

// Compact removes all changes from the log, so that a watch from an earlier revision expires.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.compacted = nil, s.revision
}

// request is a parsed request.
type request struct {
	*http.Request
	kind                         *kind
	namespace, name, subresource string
	manager                      string
	only                         string // name of the one object that is listed or watched; empty means all
}

func (r request) key() objectKey { return objectKey{r.kind.key, r.namespace, r.name} }

// ServeHTTP answers a request as an API server does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := s.parse(r)
	if err != nil {
		reply(w, err)
		return
	}
	if r.Method == http.MethodGet && req.name == "" && r.URL.Query().Get("watch") != "" && r.URL.Query().Get("watch") != "false" {
		s.watch(w, req)
		return
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

// readSelectors accepts the one selector that clients of this project use, which is a name.
func (r *request) readSelectors() error {
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
	if query.Get("labelSelector") != "" {
		return badRequest("label selectors are not supported")
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

func encode(object *unstructured.Unstructured) ([]byte, error) {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return data, nil
}
