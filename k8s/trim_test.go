// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"encoding/json"
	"math"
	"net/http"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

func TestTrimKeepsWhatIsRead(t *testing.T) {
	long := strings.Repeat("x", 1<<18)
	on := true
	before := metav1.ObjectMeta{
		Name: "one", Namespace: "db", UID: "u", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"team": "a"},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"password":"secret"}}`},
		Finalizers:  []string{long}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "operator"}},
		OwnerReferences: []metav1.OwnerReference{{Kind: long, Name: long}, {Kind: "Rds", Name: long, UID: "r"}},
	}
	want := metav1.ObjectMeta{Name: "one", Namespace: "db", UID: "u", ResourceVersion: "7", Generation: 3}
	rds := &otcv1.Rds{
		ObjectMeta: before,
		Spec: otcv1.Spec{
			Autopilot: &on, VolumeSize: 40, FlavorRef: long, Endpoint: long,
		},
		Status: otcv1.Status{ID: long, Status: long},
	}
	a := &autopilotv1.RdsAutopilot{ObjectMeta: before, Status: autopilotv1.Status{Instance: &autopilotv1.Instance{ID: "i"}}}
	for range 2 { // a second time changes nothing
		for _, o := range []any{rds, a} {
			if _, err := transform(o); err != nil {
				t.Fatal(err)
			}
			if text, err := json.Marshal(o); err != nil || len(text) > 1000 {
				t.Errorf("%T keeps %d bytes, %v", o, len(text), err)
			}
		}
		if diff := cmp.Diff(want, rds.ObjectMeta); diff != "" || rds.Spec.VolumeSize != 40 || !*rds.Spec.Autopilot || rds.Spec.Endpoint == "" {
			t.Errorf("the Rds keeps %+v, metadata (-want +got):\n%s", rds.Spec, diff)
		}
		owned := want
		owned.OwnerReferences = []metav1.OwnerReference{{Kind: "Rds", UID: "r"}}
		if diff := cmp.Diff(owned, a.ObjectMeta); diff != "" || a.Status.Instance == nil {
			t.Errorf("the RdsAutopilot keeps (-want +got):\n%s", diff)
		}
	}
}

func TestPageOfLargeObjectsCostsAtMost20MB(t *testing.T) {
	const objects = 12
	item := `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 1e6) + `"}},"status":{"id":"` + strings.Repeat("x", 1<<10) + `"}}`
	pages, bodies := 0, map[string]string{} // made once, because their memory would count
	c, err := connect(t, func(r *http.Request) (int, string) {
		begin, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		if limit == 1 {
			return empty(r)
		}
		pages++
		end := min(objects, begin+limit)
		next := strings.TrimSuffix(strconv.Itoa(end), strconv.Itoa(objects))
		if bodies[next] == "" {
			bodies[next] = `{"metadata":{"continue":"` + next + `"},"items":[` + strings.Join(slices.Repeat([]string{item}, end-begin), ",") + `]}`
		}
		return 200, bodies[next]
	})
	must(t, err)
	var before, after goruntime.MemStats
	var all runtime.Object
	each := uint64(math.MaxUint64)
	for range 4 { // a collection empties the pools of buffers
		pages = 0
		goruntime.ReadMemStats(&before)
		all, err = listAll(t.Context(), c.rdsIn(""))
		goruntime.ReadMemStats(&after)
		each = min(each, (after.TotalAlloc-before.TotalAlloc)/uint64(pages))
	}
	items, listErr := meta.ExtractList(all)
	if err != nil || listErr != nil || len(items) != objects || len(items[objects-1].(*otcv1.Rds).Status.ID) > maxID {
		t.Fatalf("%d objects, %v, %v", len(items), err, listErr)
	}
	if each > 20e6 {
		t.Errorf("each of %d pages costs %d MB", pages, each/1e6)
	}
}

// EachRds calls f with every Rds as the cache holds it.
func (c *Cluster) EachRds(f func(*otcv1.Rds)) { c.rds.each(f) }
