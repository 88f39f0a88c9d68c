// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// filled draws a value for every field that there is, also for one that is added to the API later.
func filled(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.SampledFrom([]string{"", "cpu", "storage"}), rapid.String()).Draw(t, "text"))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(rapid.Int32().Draw(t, "number")))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			filled(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				filled(t, v.Index(i))
			}
		}
	case reflect.Struct:
		if isTime(v) {
			if rapid.Bool().Draw(t, "set") {
				v.Field(0).Set(reflect.ValueOf(time.UnixMicro(rapid.Int64Range(-1e15, 4e15).Filter(func(us int64) bool { return us != 0 }).Draw(t, "time"))))
			}
			return
		}
		for i := range v.NumField() { //nolint:modernize // as there
			filled(t, v.Field(i))
		}
	default:
		t.Fatalf("a history has a field of %s: packer.add and unpacker.read must learn it, and this test", v.Type())
	}
}

func TestWhatIsPackedComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history
		filled(t, reflect.ValueOf(&h).Elem())
		p, err := packHistory(h)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, p.unpack()); diff != "" {
			t.Errorf("what was packed (-want +got):\n%s", diff)
		}
	})
}

func TestAPackedAutopilotIsTheWholeOne(t *testing.T) {
	a := withHistory()
	want := a.DeepCopy()
	p, err := pack(a)
	if err != nil {
		t.Fatal(err)
	}
	if p.Status.Decisions != nil || p.Status.Changes != nil || p.Status.FormerVolumes != nil {
		t.Error("the history is held twice")
	}
	for range 2 { // what was unpacked may be altered
		got := p.unpack()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the object (-want +got):\n%s", diff)
		}
		got.Status.Decisions[0].Message = "another"
		got.Status.Changes[0].EvidenceTime.Time = time.Time{}
	}
	whole := len(fmt.Sprintf("%+v", history{a.Status.Changes, a.Status.FormerVolumes, a.Status.Decisions}))
	if size := len(p.history.texts) + len(p.history.values); size*3 > whole {
		t.Errorf("%d bytes, want no more than a third of %d", size, whole)
	}
	if diff := cmp.Diff(p, p.DeepCopyObject(), cmp.AllowUnexported(packed{}, packedHistory{})); diff != "" {
		t.Errorf("a copy (-want +got):\n%s", diff)
	}
	again, err := transform(p)
	if err != nil || again != any(p) {
		t.Errorf("packed again: %v", err)
	}
}

// withHistory is an RdsAutopilot whose lists are full.
func withHistory() *autopilotv1.RdsAutopilot {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Local()
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	micro := func(n int) *metav1.MicroTime { m := metav1.NewMicroTime(at(n)); return &m }
	a := &autopilotv1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "1", ResourceVersion: "10"}}
	for n := range 12 {
		a.Status.Changes = append(a.Status.Changes, autopilotv1.Change{
			Kind: autopilotv1.KindFlavor, By: autopilotv1.ByAutopilot, From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4", Metrics: []autopilotv1.Metric{autopilotv1.MetricCPU},
			ValuePercent: "97.3", EvidenceTime: micro(-n), DecisionTime: micro(-n), CompletionTime: *micro(-n), Outcome: autopilotv1.OutcomeCompleted, Generation: 1,
		})
	}
	for n := range 8 {
		a.Status.FormerVolumes = append(a.Status.FormerVolumes, autopilotv1.FormerVolume{VolumeGB: 90, Until: metav1.NewTime(at(-n))})
	}
	for n := range 20 {
		a.Status.Decisions = append(a.Status.Decisions, autopilotv1.DecisionRecord{
			Time: metav1.NewTime(at(-n)), Count: 12, Metric: autopilotv1.MetricMemory, Action: "None", Reason: []string{"Cooldown", "BudgetSpent"}[n%2],
			From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4", ValuePercent: "97.3", MessageID: fmt.Sprintf("%032d", n),
			Message: fmt.Sprintf("The flavor changed %d minutes ago, and the cooldown is an hour: memory is at 97.3 %%", n),
		})
	}
	return a
}

func BenchmarkPack(b *testing.B) {
	a := withHistory()
	b.ReportAllocs()
	for b.Loop() {
		copied := *a
		if _, err := pack(&copied); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	p, err := pack(withHistory())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.unpack()
	}
}
