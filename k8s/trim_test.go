// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

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

// paged is a server of 60 objects.
type paged struct{ largest, pages int64 }

func (p *paged) List(_ context.Context, opts metav1.ListOptions) (*otcv1.RdsList, error) {
	p.largest, p.pages = max(p.largest, opts.Limit), p.pages+1
	begin, _ := strconv.Atoi(opts.Continue)
	page := &otcv1.RdsList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	end := min(60, begin+int(opts.Limit))
	for i := begin; i < end; i++ {
		page.Items = append(page.Items, otcv1.Rds{Status: otcv1.Status{ID: strings.Repeat("x", 1<<16)}})
	}
	if end < 60 {
		page.Continue = strconv.Itoa(end)
	}
	return page, nil
}

func (*paged) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, nil }

func TestCacheIsFilledPageByPage(t *testing.T) {
	server := &paged{}
	all, err := cache.ToListerWithContext(listWatch(server, func(error) {})).ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(all)
	if err != nil || len(items) != 60 || server.largest == 0 || server.largest > 50 || server.pages < 2 {
		t.Fatalf("%d objects in %d pages of at most %d, %v", len(items), server.pages, server.largest, err)
	}
	if id := items[59].(*otcv1.Rds).Status.ID; len(id) > maxID {
		t.Errorf("an id of %d bytes", len(id))
	}
}
