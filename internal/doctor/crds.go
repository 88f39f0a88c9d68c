// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// checkCRDs compares the CRDs with the types of this version. The API server silently drops fields that an older CRD
// lacks.
func (x *examination) checkCRDs(ctx context.Context) []Result {
	var versions []string
	for _, k := range []struct {
		gv   schema.GroupVersion
		kind string
		is   reflect.Type
	}{
		{otcv1.GroupVersion(), otcv1.Kind, reflect.TypeFor[otcv1.Rds]()},
		{v1alpha1.GroupVersion(), v1alpha1.Kind, reflect.TypeFor[v1alpha1.RdsAutopilot]()},
	} {
		if k.kind == otcv1.Kind && x.kube.lacksRds {
			versions = append(versions, "no CRD of the Rds, which --allow-apply=Cloud does not need")
			continue
		}
		raw, err := x.kube.access.RESTClient().Get().AbsPath("/openapi/v3/apis", k.gv.Group, k.gv.Version).DoRaw(ctx)
		if err != nil {
			return result(Unseen, "", "The API server does not return its schema: %v", err)
		}
		if lacks := missing(k.is, schemaOf(raw, k.kind), nil); len(lacks) > 0 {
			return result(Failed, "Update the CRDs: kubectl apply -f deploy/crds",
				"The CRD of %s is older than this version: it has no %s", k.kind, strings.Join(lacks, ", "))
		}
		versions = append(versions, fmt.Sprintf("%s %s", k.kind, k.gv))
	}
	return ok("%s: all fields of this version exist", strings.Join(versions, ", "))
}

// openAPI is the part of a schema that names the fields.
type openAPI struct {
	Kinds []struct {
		Kind string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`
	Properties map[string]*openAPI `json:"properties"`
	Items      *openAPI            `json:"items"`
}

// schemaOf returns the schema of a kind in an OpenAPI v3 document, or nil.
func schemaOf(document []byte, kind string) *openAPI {
	var doc struct {
		Components struct {
			Schemas map[string]*openAPI `json:"schemas"`
		} `json:"components"`
	}
	_ = json.Unmarshal(document, &doc) // an invalid document has no schema
	for _, s := range doc.Components.Schemas {
		if len(s.Kinds) == 1 && s.Kinds[0].Kind == kind {
			return s
		}
	}
	return nil
}

// missing returns the paths of the fields of one of our types that the schema lacks.
func missing(t reflect.Type, s *openAPI, path []string) (lacks []string) {
	for s != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		if t.Kind() == reflect.Slice {
			s = s.Items
		}
		t = t.Elem()
	}
	if s == nil {
		return []string{strings.Join(path, ".")}
	}
	if t.Kind() != reflect.Struct || !strings.Contains(t.PkgPath(), "/k8s/api/") { // such as a time
		return nil
	}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "metadata" {
			lacks = append(lacks, missing(f.Type, s.Properties[name], append(slices.Clip(path), name))...)
		}
	}
	return lacks
}
