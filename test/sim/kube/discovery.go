// SPDX-License-Identifier: Apache-2.0

package simkube

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// discover answers the requests of a client for versions, groups and their resources.
func (s *Server) discover(path string) (answer any, ok bool) {
	switch path = strings.TrimSuffix(path, "/"); path {
	case "/version":
		return version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0+memory"}, true
	case "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case "/apis":
		return s.groups(), true
	}
	version, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		version, ok = strings.CutPrefix(path, "/api/")
	}
	if !ok {
		return nil, false
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
	for _, k := range s.sortedKinds() {
		if k.gvk.GroupVersion().String() == version {
			list.APIResources = append(list.APIResources, k.resources()...)
		}
	}
	return list, len(list.APIResources) > 0
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range s.sortedKinds() {
		name := k.gvk.Group
		if name == "" || slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == name }) {
			continue
		}
		served := metav1.GroupVersionForDiscovery{GroupVersion: k.gvk.GroupVersion().String(), Version: k.gvk.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: name, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served,
		})
	}
	return list
}

func (s *Server) sortedKinds() []*kind {
	return slices.SortedFunc(maps.Values(s.kinds), func(a, b *kind) int { return strings.Compare(a.key, b.key) })
}

func (k *kind) resources() []metav1.APIResource {
	all := []metav1.APIResource{{
		Name: k.resource, SingularName: strings.ToLower(k.gvk.Kind), Kind: k.gvk.Kind, ShortNames: k.shortNames, Namespaced: k.namespaced,
		Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
	}}
	if k.status {
		all = append(all, metav1.APIResource{
			Name: k.resource + "/status", Kind: k.gvk.Kind, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
		})
	}
	return all
}

func writeJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client has left
}
