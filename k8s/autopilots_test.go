// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestCreatedAutopilotHasDefaultsOwnerAndFinalizer(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	a := createAutopilot(t, c, ns, "shop")
	rds, err := c.LiveTarget(t.Context(), ns, "shop")
	if err != nil {
		t.Fatal(err)
	}
	no := false
	want := []metav1.OwnerReference{{
		APIVersion: "otc.mcsps.de/v1alpha1", Kind: "Rds", Name: "shop", UID: rds.UID, Controller: &no, BlockOwnerDeletion: &no,
	}}
	if diff := cmp.Diff(want, a.OwnerReferences); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{autopilotv1.Finalizer}, a.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	s := a.Spec
	if s.Mode != autopilotv1.ModeAuto || s.Storage.StepGB != 10 || s.Storage.Alarm.Count != 5 || s.Flavor.CPU.Enabled == nil ||
		!*s.Flavor.CPU.Enabled || s.Flavor.MaxChangesPerDay != 2 {
		t.Errorf("spec lacks defaults: %s", encoded(t, s))
	}
	if err := c.CreateAutopilot(t.Context(), rds); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if again, err := c.LiveAutopilot(t.Context(), ns, "shop"); err != nil || again.UID != a.UID || again.ResourceVersion != a.ResourceVersion {
		t.Errorf("after the second time: %v, %v", again, err)
	}
}

// onePerPage asks for one object at a time where a list is asked for in pages.
type onePerPage struct{ next http.RoundTripper }

func (o onePerPage) RoundTrip(r *http.Request) (*http.Response, error) {
	if query := r.URL.Query(); query.Has("limit") {
		r = r.Clone(r.Context())
		query.Set("limit", "1")
		r.URL.RawQuery = query.Encode()
	}
	return o.next.RoundTrip(r)
}

func TestALiveListReadsAllPages(t *testing.T) {
	ns, cfg := shared.Cluster(t).Namespace(t), asShipped(t)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return onePerPage{next} })
	c, err := k8s.Connect(t.Context(), cfg, k8s.Options{Version: "test", Namespaces: []string{ns}, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	var made, found []string
	for _, name := range []string{"one", "three", "two"} {
		made = append(made, createAutopilot(t, c, ns, name).Name)
	}
	all, err := c.LiveAutopilots(t.Context())
	for _, a := range all {
		found = append(found, a.Name)
	}
	if err != nil || !slices.Equal(made, found) {
		t.Errorf("found %v, %v; want %v", found, err, made)
	}
}

// TestFinalizersOfOthersStay has more of them than the caches keep.
func TestFinalizersOfOthersStay(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	made := createAutopilot(t, c, ns, "shop")
	var others []string
	for i := range 100 {
		others = append(others, fmt.Sprintf("example.com/other-%d", i))
	}
	set := func(finalizers []string) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rdsAutopilots(t, ns).Patch(t.Context(), made.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	stored := func() (a *autopilotv1.RdsAutopilot, finalizers []string) {
		t.Helper()
		a, err := c.LiveAutopilot(t.Context(), ns, made.Name)
		if err != nil {
			t.Fatal(err)
		}
		object, err := rdsAutopilots(t, ns).Get(t.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return a, object.GetFinalizers()
	}
	set(append(others, autopilotv1.Finalizer))
	a, _ := stored()
	if err := c.RemoveFinalizer(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	a, left := stored()
	if !slices.Equal(left, others) {
		t.Errorf("after ours was removed: %v", left)
	}
	if _, err := c.SetFinalizer(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, with := stored(); !slices.Equal(with, append(others, autopilotv1.Finalizer)) {
		t.Errorf("after ours was added: %v", with)
	}
	set(nil)
}

func TestFinalizerAndDeletion(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	made := createAutopilot(t, c, ns, "shop")

	another := made.DeepCopy()
	another.UID = "someone-else"
	if err := c.DeleteAutopilot(t.Context(), another); !errors.Is(err, autopilot.ErrConflict) {
		t.Errorf("delete another object of that name: %v", err)
	}
	if err := c.RemoveFinalizer(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveFinalizer(t.Context(), made); !errors.Is(err, autopilot.ErrConflict) {
		t.Errorf("with an old version: %v", err)
	}
	bare, err := c.LiveAutopilot(t.Context(), ns, "shop")
	if err != nil || len(bare.Finalizers) > 0 {
		t.Fatalf("finalizers %v, %v", bare.Finalizers, err)
	}
	bare.Finalizers = []string{"example.com/other"}
	kept, err := c.SetFinalizer(t.Context(), bare)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"example.com/other", autopilotv1.Finalizer}, kept.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	again, err := c.SetFinalizer(t.Context(), kept)
	if err != nil || again.ResourceVersion != kept.ResourceVersion {
		t.Errorf("set twice: %v, written: %v", err, again.ResourceVersion != kept.ResourceVersion)
	}

	if err := c.DeleteAutopilot(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	ending, err := c.LiveAutopilot(t.Context(), ns, "shop")
	if err != nil || ending.DeletionTimestamp == nil {
		t.Fatalf("deleted in spite of finalizers: %v", err)
	}
	if err := c.RemoveFinalizer(t.Context(), ending); err != nil {
		t.Fatal(err)
	}
	others, err := c.LiveAutopilot(t.Context(), ns, "shop")
	if err != nil || !cmp.Equal([]string{"example.com/other"}, others.Finalizers) {
		t.Fatalf("another's finalizer is not ours to take: %v, %v", others, err)
	}
	if _, err := rdsAutopilots(t, ns).Patch(t.Context(), "shop", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveFinalizer(t.Context(), ending); err != nil {
		t.Errorf("of an object that is gone: %v", err)
	}
	if err := c.DeleteAutopilot(t.Context(), made); err != nil {
		t.Errorf("delete what is gone: %v", err)
	}
	if _, err := c.WriteStatus(t.Context(), made, withGeneration(made, 7)); !errors.Is(err, autopilot.ErrGone) {
		t.Errorf("status of what is gone: %v", err)
	}
}

func withGeneration(a *autopilotv1.RdsAutopilot, n int64) autopilotv1.Status {
	s := *a.Status.DeepCopy()
	s.ObservedGeneration = n
	return s
}

func intake(signals ...autopilotv1.Signal) autopilotv1.Intake {
	return autopilotv1.Intake{Signals: signals}
}

func signal(metric autopilotv1.Metric, id string) autopilotv1.Signal {
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	return autopilotv1.Signal{
		Metric: metric, AlarmID: "al1", State: autopilotv1.StateAlarm, AlarmTime: now, MessageID: id, ReceivedTime: now,
	}
}

func TestStatusWritersKeepToTheirFields(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	a := createAutopilot(t, c, ns, "shop")
	both := autopilotv1.Status{
		ObservedGeneration: 3,
		Instance:           &autopilotv1.Instance{ID: "i", VolumeGB: 40, Zones: []string{"eu-de-01"}},
		Intake:             intake(signal(autopilotv1.MetricCPU, "m1")),
	}

	byLeader, err := c.WriteStatus(t.Context(), a, both)
	if err != nil {
		t.Fatal(err)
	}
	if byLeader.Status.ObservedGeneration != 3 || byLeader.Status.Instance.VolumeGB != 40 || byLeader.Status.Intake.Signals != nil {
		t.Errorf("leader wrote %s", encoded(t, byLeader.Status))
	}
	if err := c.WriteIntake(t.Context(), byLeader, both.Intake); err != nil {
		t.Fatal(err)
	}
	byWebhook, err := c.LiveAutopilot(t.Context(), ns, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if byWebhook.Status.ObservedGeneration != 3 || len(byWebhook.Status.Intake.Signals) != 1 {
		t.Errorf("webhook wrote %s", encoded(t, byWebhook.Status))
	}

	byLeader, err = c.WriteStatus(t.Context(), byWebhook, autopilotv1.Status{Instance: &autopilotv1.Instance{ID: "i"}})
	if err != nil {
		t.Fatal(err)
	}
	want := autopilotv1.Status{Instance: &autopilotv1.Instance{ID: "i"}, Intake: byWebhook.Status.Intake}
	if diff := cmp.Diff(want, byLeader.Status, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("removed fields (-want +got):\n%s", diff)
	}

	same, err := c.WriteStatus(t.Context(), byLeader, byLeader.Status)
	if err != nil || same.ResourceVersion != byLeader.ResourceVersion {
		t.Errorf("nothing to write: %v, written %v", err, same.ResourceVersion != byLeader.ResourceVersion)
	}
	if spec := same.Spec; !cmp.Equal(spec, a.Spec) {
		t.Errorf("spec became %s", encoded(t, spec))
	}
}

// A write reads no more than the metadata of its answer: what it returns has to be what the API server has all the same.
func TestWhatAWriteReturnsIsWhatIsStored(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	a := createAutopilot(t, c, ns, "shop")
	live := func() *autopilotv1.RdsAutopilot {
		t.Helper()
		stored, err := c.LiveAutopilot(t.Context(), ns, "shop")
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC).Local())
	status := autopilotv1.Status{
		ObservedGeneration: 1,
		Conditions:         []metav1.Condition{{Type: autopilotv1.ConditionArmed, Status: metav1.ConditionTrue, Reason: "Armed", LastTransitionTime: metav1.NewTime(at.Truncate(time.Second))}},
		Instance:           &autopilotv1.Instance{ID: "i", VolumeGB: 40, Zones: []string{"eu-de-01"}},
		Pending:            &autopilotv1.Intent{Kind: autopilotv1.KindVolume, Metrics: []autopilotv1.Metric{autopilotv1.MetricStorage}, From: "40", To: "50", EvidenceTime: at, DecisionTime: at},
		Changes:            []autopilotv1.Change{{Kind: autopilotv1.KindVolume, By: autopilotv1.ByOther, From: "30", To: "40", CompletionTime: at, Outcome: autopilotv1.OutcomeCompleted}},
		Decisions:          []autopilotv1.DecisionRecord{{Time: metav1.NewTime(at.Truncate(time.Second)), Count: 1, Metric: autopilotv1.MetricStorage, Action: "None", Reason: "CapReached", Message: "No"}},
	}
	for _, next := range []autopilotv1.Status{status, {ObservedGeneration: 2, Decisions: status.Decisions}, {}} {
		written, err := c.WriteStatus(t.Context(), a, next)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(live(), written, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
			t.Errorf("what WriteStatus returns (-stored +returned):\n%s", diff)
		}
		a = written
	}
	if err := c.RemoveFinalizer(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	a, err := c.SetFinalizer(t.Context(), live())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live(), a, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
		t.Errorf("what SetFinalizer returns (-stored +returned):\n%s", diff)
	}
}

func TestStatusOfAnOldVersionIsAConflict(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	read := createAutopilot(t, c, ns, "shop")
	if _, err := c.WriteStatus(t.Context(), read, withGeneration(read, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WriteStatus(t.Context(), read, withGeneration(read, 2)); !errors.Is(err, autopilot.ErrConflict) {
		t.Errorf("leader: %v", err)
	}
	if err := c.WriteIntake(t.Context(), read, intake(signal(autopilotv1.MetricCPU, "m1"))); !errors.Is(err, autopilot.ErrConflict) {
		t.Errorf("webhook: %v", err)
	}
	now, err := c.LiveAutopilot(t.Context(), ns, "shop")
	if err != nil || now.Status.ObservedGeneration != 1 || now.Status.Intake.Signals != nil {
		t.Errorf("stored %v, %v", now, err)
	}
}

func TestParallelWritersLoseNothing(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	createAutopilot(t, c, ns, "shop")
	const rounds = 20
	untilWritten := func(write func(read *autopilotv1.RdsAutopilot) error) {
		for {
			read, err := c.LiveAutopilot(t.Context(), ns, "shop")
			if err == nil {
				err = write(read)
			}
			if errors.Is(err, autopilot.ErrConflict) {
				continue
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
	var wg sync.WaitGroup
	for _, metric := range []autopilotv1.Metric{autopilotv1.MetricStorage, autopilotv1.MetricCPU} { // two replicas
		wg.Go(func() {
			for i := range rounds {
				untilWritten(func(read *autopilotv1.RdsAutopilot) error {
					signals := slices.DeleteFunc(slices.Clone(read.Status.Intake.Signals), func(s autopilotv1.Signal) bool { return s.Metric == metric })
					return c.WriteIntake(t.Context(), read, intake(append(signals, signal(metric, fmt.Sprintf("%s-%d", metric, i)))...))
				})
			}
		})
	}
	wg.Go(func() { // the leader
		for range rounds {
			untilWritten(func(read *autopilotv1.RdsAutopilot) error {
				_, err := c.WriteStatus(t.Context(), read, withGeneration(read, read.Status.ObservedGeneration+1))
				return err
			})
		}
	})
	wg.Wait()

	a, err := c.LiveAutopilot(t.Context(), ns, "shop")
	if err != nil {
		t.Fatal(err)
	}
	got := map[autopilotv1.Metric]string{}
	for _, s := range a.Status.Intake.Signals {
		got[s.Metric] = s.MessageID
	}
	want := map[autopilotv1.Metric]string{autopilotv1.MetricStorage: "storage-19", autopilotv1.MetricCPU: "cpu-19"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
	if a.Status.ObservedGeneration != rounds {
		t.Errorf("the leader's %d writes count %d", rounds, a.Status.ObservedGeneration)
	}
}
