// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// KubeName names a request to the API server by verb, resource and subresource: "patch rdsautopilots/status", "watch rdss",
// "get version".
func KubeName(r *http.Request) string {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch path[0] { // the API's group and version
	case "api":
		path = path[min(2, len(path)):]
	case "apis":
		path = path[min(3, len(path)):]
	default:
		return strings.ToLower(r.Method) + " " + path[0]
	}
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	what, named := "discovery", false
	if len(path) > 0 {
		what, named = path[0], len(path) > 1
	}
	if len(path) > 2 {
		what += "/" + path[2]
	}
	return kubeVerb(r, named) + " " + what
}

func kubeVerb(r *http.Request, named bool) string {
	switch {
	case r.Method == http.MethodGet && watches(r):
		return "watch"
	case r.Method == http.MethodGet && !named:
		return "list"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	}
	return strings.ToLower(r.Method)
}

func watches(r *http.Request) bool {
	w := r.URL.Query().Get("watch")
	return w == "true" || w == "1"
}

// CloudName names a request to the simulated cloud by service and operation: "ces ListAlarms".
func CloudName(r *http.Request) string {
	service, operation := simcloud.OperationOf(r)
	return service + " " + operation
}
