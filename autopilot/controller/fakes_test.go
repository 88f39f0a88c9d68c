package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

var errCrash = errors.New("the process was killed here")

// steps counts the calls that change something, and kills at one of them: before it is applied, or after.
type steps struct {
	n, killAt int
	applied   bool
	names     []string
}

func (s *steps) do(name string, apply func() error) error {
	s.n++
	s.names = append(s.names, name)
	if s.n == s.killAt && !s.applied {
		return errCrash
	}
	if err := apply(); err != nil {
		return err
	}
	if s.n == s.killAt {
		return errCrash
	}
	return nil
}

// world is one database in Kubernetes and in the cloud. It keeps the API server's rules: a write goes on top of what
// was read, a finalizer holds a deletion up.
type world struct {
	*steps
	mu      sync.Mutex // decisions and arming go on side by side
	rds     *otcv1.Rds
	rap     *v1alpha1.RdsAutopilot
	version int
	inst    *autopilot.Instance
	usedGB  float64
	cpu     float64
	state   map[string]v1alpha1.State
	now     time.Time
	gone    bool // cloud unreachable

	listed    map[string]AlarmState // the last listing of rules
	listedAt  time.Time
	listedFor time.Duration
	listings  int

	refusal     string   // of the API server, for patches of the Rds
	putsBack    bool     // something in the API server restores the old value
	offered     []string // the instance's resize list
	resizeLists int      // how often it was read
	noFlavors   bool     // the catalogue cannot be read
	duringCloud func()   // what happens while the round waits for the cloud

	patches []string
	topics  int
	events  []autopilot.Event
}

func newWorld() *world {
	on := true
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return &world{
		steps: &steps{}, now: now, usedGB: 50, cpu: 10, state: map[string]v1alpha1.State{},
		rds: &otcv1.Rds{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "rds-uid"},
			Spec:       otcv1.Spec{Autopilot: &on, VolumeSize: 100, FlavorRef: "rds.mysql.n1.large.4", DatastoreType: "MySQL"},
			Status:     otcv1.Status{ID: "in01"},
		},
		inst: &autopilot.Instance{
			ID: "in01", Status: autopilot.StatusActive, Engine: "MySQL", Version: "8.0", Mode: "single", Flavor: "rds.mysql.n1.large.4",
			VCPUs: 2, MemoryGB: 8, VolumeGB: 100, Zones: []string{"eu-de-01"},
		},
	}
}

func (w *world) bump() { w.version++; w.rap.ResourceVersion = strconv.Itoa(w.version) }

func (w *world) Target(_, _ string) *autopilot.Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	return k8s.TargetOf(w.rds)
}

func (w *world) EachTarget(f func(*autopilot.Target)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rds != nil {
		f(k8s.TargetOf(w.rds))
	}
}

func (w *world) TargetsByInstance(string) []*autopilot.Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []*autopilot.Target{k8s.TargetOf(w.rds)}
}

func (w *world) Autopilot(_, _ string) (*v1alpha1.RdsAutopilot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rap.DeepCopy(), w.rap != nil
}

func (w *world) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rap != nil {
		f(w.rap)
	}
}

func (w *world) LiveAutopilots(context.Context) (all []*v1alpha1.RdsAutopilot, err error) {
	w.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { all = append(all, a.DeepCopy()) })
	return all, nil
}

func (w *world) LiveAutopilot(context.Context, string, string) (*v1alpha1.RdsAutopilot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rap == nil {
		return nil, autopilot.ErrGone
	}
	return w.rap.DeepCopy(), nil
}

func (w *world) CreateAutopilot(_ context.Context, t *autopilot.Target) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.do("create", func() error {
		w.rap = &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: t.Name, UID: types.UID("rap-uid"), Generation: 1, Finalizers: []string{v1alpha1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{{Kind: otcv1.Kind, Name: t.Name, UID: t.UID}},
		}}
		w.rap.Spec = v1alpha1.Spec{
			Mode: v1alpha1.ModeAuto,
			Storage: v1alpha1.Storage{
				StepGB: 10, MaxGB: 4000, ThresholdPercent: 90, Alarm: v1alpha1.StorageAlarm{PeriodSeconds: 1, Count: 5},
			},
			Flavor: v1alpha1.Flavor{
				CPU: v1alpha1.Trigger{ThresholdPercent: 90}, Memory: v1alpha1.Trigger{ThresholdPercent: 90},
				Alarm: v1alpha1.FlavorAlarm{PeriodSeconds: 300, Count: 3}, MaxChangesPerDay: 2,
			},
		}
		w.bump()
		return nil
	})
}

func (w *world) DeleteAutopilot(context.Context, *v1alpha1.RdsAutopilot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.do("delete", func() error {
		at := metav1.NewTime(w.now)
		w.rap.DeletionTimestamp = &at
		w.collect()
		return nil
	})
}

func (w *world) collect() {
	if w.rap != nil && w.rap.DeletionTimestamp != nil && len(w.rap.Finalizers) == 0 {
		w.rap = nil
		return
	}
	w.bump()
}

func (w *world) SetFinalizer(_ context.Context, a *v1alpha1.RdsAutopilot) (*v1alpha1.RdsAutopilot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.do("finalizer", func() error {
		w.rap.Finalizers = append(w.rap.Finalizers, v1alpha1.Finalizer)
		w.bump()
		return nil
	})
	return w.rap.DeepCopy(), err
}

func (w *world) RemoveFinalizer(context.Context, *v1alpha1.RdsAutopilot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.do("no finalizer", func() error {
		w.rap.Finalizers = slices.DeleteFunc(w.rap.Finalizers, func(f string) bool { return f == v1alpha1.Finalizer })
		w.collect()
		return nil
	})
}

func (w *world) WriteStatus(_ context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.do("status", func() error {
		if read.ResourceVersion != w.rap.ResourceVersion {
			return autopilot.ErrConflict
		}
		intake := w.rap.Status.Intake
		w.rap.Status = *next.DeepCopy()
		w.rap.Status.Intake = intake
		w.bump()
		return nil
	})
	return w.rap.DeepCopy(), err
}

func (w *world) Apply(_ context.Context, read *autopilot.Target, i v1alpha1.Intent) (*autopilot.Target, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.do("patch "+strings.ToLower(string(i.Kind)), func() error {
		if w.refusal != "" {
			return &autopilot.RefusedError{Message: w.refusal}
		}
		if live := k8s.TargetOf(w.rds); live.Wanted != read.Wanted || live.InstanceID != read.InstanceID {
			return autopilot.ErrConflict
		}
		w.patches = append(w.patches, i.To)
		if w.putsBack {
			return nil
		}
		if i.Kind == v1alpha1.KindFlavor {
			w.rds.Spec.FlavorRef = i.To
			return nil
		}
		gb, err := strconv.ParseInt(i.To, 10, 32)
		w.rds.Spec.VolumeSize = int32(gb)
		return err
	})
	return k8s.TargetOf(w.rds), err
}

func (w *world) Writer(context.Context, *autopilot.Target, v1alpha1.ChangeKind) (string, error) {
	return "a-gitops-tool", nil
}

func (w *world) Event(_ *autopilot.Target, _ *v1alpha1.RdsAutopilot, e autopilot.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// cloud is the world's other side. Methods of both sides have the same names, so it is a type of its own.
type cloud struct{ *world }

func (c cloud) Instance(context.Context, string, time.Time) (*autopilot.Instance, error) {
	if c.gone {
		return nil, errors.New("no answer")
	}
	if c.duringCloud != nil {
		c.duringCloud()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inst == nil {
		return nil, nil
	}
	i := *c.inst
	return &i, nil
}

func (c cloud) AlarmStates(_ context.Context, notBefore time.Time) (map[string]AlarmState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, errors.New("no answer")
	}
	if c.listedFor > 0 && c.listed != nil && !c.listedAt.Before(notBefore) {
		return c.listed, nil
	}
	c.listings++
	c.listed, c.listedAt = map[string]AlarmState{}, c.now
	for id, s := range c.state {
		c.listed[id] = AlarmState{s, c.now.Add(-time.Minute)}
	}
	return c.listed, nil
}

func (c cloud) ListedFor() time.Duration { return max(c.listedFor, time.Second) }

func (c cloud) Evidence(_ context.Context, _ autopilot.Instance, wanted []EvidenceOf) (map[v1alpha1.Metric]autopilot.Evidence, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[v1alpha1.Metric]autopilot.Evidence{}
	for _, e := range wanted {
		found[e.Metric] = autopilot.Evidence{Time: c.now, Percent: c.cpu, UsedGB: c.usedGB}
	}
	return found, nil
}

func (c cloud) Catalogue(context.Context, autopilot.Instance) (cat []flavors.Flavor, err error) {
	if c.noFlavors {
		return nil, errors.New("no flavors")
	}
	for code, n := range map[string]int{"rds.mysql.n1.large.4": 2, "rds.mysql.n1.xlarge.4": 4, "rds.mysql.n1.2xlarge.4": 8} {
		cat = append(cat, flavors.Flavor{
			Code: code, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "single", VCPUs: n, MemoryGB: 4 * n,
			Zones: map[string]string{"eu-de-01": flavors.ZoneNormal},
		})
	}
	return cat, nil
}

func (c cloud) ResizeList(context.Context, autopilot.Instance) ([]string, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resizeLists++
	return c.offered, c.offered != nil, nil
}

// Ensure arms in two steps, as the cloud makes it necessary.
func (c cloud) Ensure(_ context.Context, w Arms, have v1alpha1.Alarms, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	if c.gone {
		return have, nil, errors.New("no answer")
	}
	if have.TopicURN == "" {
		c.mu.Lock()
		err := c.do("topic", func() error { c.topics = 1; return nil })
		c.mu.Unlock()
		if err != nil {
			return have, nil, err
		}
		have.TopicURN = "urn"
		if err := record(have); err != nil {
			return have, nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	have.Subscription, have.Rules = v1alpha1.SubscriptionConfirmed, nil
	for _, r := range w.Rules {
		id := "al-" + string(r.Metric)
		if _, ok := c.state[id]; !ok {
			c.state[id] = v1alpha1.StateOK
		}
		have.Rules = append(have.Rules, v1alpha1.Rule{Metric: r.Metric, AlarmID: id, ThresholdPercent: int32(r.ThresholdPercent), Dimension: cmp.Or(w.Dimension, "rds_cluster_id:"+w.Instance.ID)})
	}
	return have, nil, nil
}

func (c cloud) Dimension(_ context.Context, inst autopilot.Instance) (string, error) {
	if inst.Primary == "" {
		return "rds_cluster_id:" + inst.ID, nil
	}
	return "rds_instance_id:" + inst.Primary, nil
}

func (c cloud) Orphans(context.Context, time.Time, []*v1alpha1.RdsAutopilot, func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) ([]string, int, error) {
	return nil, 0, nil
}

func (c cloud) Remove(context.Context, *v1alpha1.RdsAutopilot, v1alpha1.Alarms) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return errors.New("no answer")
	}
	return c.do("remove", func() error { c.topics = 0; clear(c.state); return nil })
}
