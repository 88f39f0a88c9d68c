// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// restored is an API server whose etcd is restored from a backup: the versions of its objects go back.
type restored struct {
	list     *autopilotv1.RdsAutopilotList
	watching *watch.FakeWatcher
}

func (r *restored) List(context.Context, metav1.ListOptions) (*autopilotv1.RdsAutopilotList, error) {
	return r.list.DeepCopy(), nil
}

func (r *restored) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	r.watching = watch.NewFakeWithChanSize(10, false)
	if o.SendInitialEvents != nil && *o.SendInitialEvents { // client-go lists by a watch
		for i := range r.list.Items {
			r.watching.Add(r.list.Items[i].DeepCopy())
		}
		end := &autopilotv1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{ResourceVersion: r.list.ResourceVersion}}
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		r.watching.Action(watch.Bookmark, end)
	}
	return r.watching, nil
}

// After a restore of etcd, the objects have lower versions than those that the cache had, and their own status.
func TestCacheFollowsARestoreOfEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := func(version, topic string) *autopilotv1.RdsAutopilotList {
			a := autopilotv1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "1", ResourceVersion: version}}
			a.Status.Alarms.TopicURN = topic
			return &autopilotv1.RdsAutopilotList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []autopilotv1.RdsAutopilot{a}}
		}
		server := &restored{list: shop("100", "urn:new")}
		inf, err := informer(listWatch(server, func(error) {}), &autopilotv1.RdsAutopilot{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &Cache{autopilots: informers[*autopilotv1.RdsAutopilot]{inf}, watched: []string{""}}
		told := ""
		if err := w.OnAutopilot(func(_, now *autopilotv1.RdsAutopilot) { told = now.Status.Alarms.TopicURN }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.autopilots.run(ctx); close(done) }()
		synctest.Wait()
		written := shop("120", "urn:written").Items[0]
		server.watching.Modify(&written)
		synctest.Wait()
		if a, _ := w.Autopilot("ns", "shop"); a == nil || a.ResourceVersion != "120" || told != "urn:written" {
			t.Fatalf("before the restore: %+v, told %q", a, told)
		}
		server.list = shop("50", "urn:restored")
		expired := apierrors.NewResourceExpired("too old resource version").Status()
		server.watching.Error(&expired)
		server.watching.Stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if a, _ := w.Autopilot("ns", "shop"); a == nil || a.Status.Alarms.TopicURN != "urn:restored" || told != "urn:restored" {
			t.Errorf("after the restore: %+v, told %q", a, told)
		}
		cancel()
		<-done
	})
}
