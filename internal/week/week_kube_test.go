package week

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	weekNamespace = "week"
	watchLag      = 20 * time.Millisecond // until a write is in the cache
)

// weekKube is Kubernetes in memory, for a bubble has no network: writes go on top of what was read, the cache is behind,
// and watchers hear of every version in order. How the real API server behaves is shown elsewhere.
type weekKube struct {
	defaults map[string]any // of the spec of an RdsAutopilot, from the CRD that we ship
	evented  func(t *autopilot.Target, e autopilot.Event)
	patched  func(weekPatch)
	admit    func(old, patched *otcv1.Rds) error // what an admission makes of a patch, or why it refuses it; nil allows all
	latency  time.Duration                       // of writes

	mu         sync.Mutex
	version    int
	rds        map[string]*otcv1.Rds
	raps       map[string]*v1alpha1.RdsAutopilot
	cachedRds  map[string]*otcv1.Rds
	cachedRaps map[string]*v1alpha1.RdsAutopilot
	coming     []func() // to the cache, oldest first
	control    *controller.Controller

	arriving sync.Mutex
}

// weekPatch is a patch of an Rds that was applied.
type weekPatch struct {
	rds      *otcv1.Rds // as it was
	volumeGB int        // 0: the flavor is patched
	flavor   string
	intent   v1alpha1.Intent // as it was stored by then
}

func newWeekKube(t *testing.T) *weekKube {
	t.Helper()
	data, err := os.ReadFile("../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct{ Properties map[string]map[string]any }
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	defaults, ok := schemaDefault(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]).(map[string]any)
	if !ok || defaults["mode"] != "Auto" {
		t.Fatalf("the CRD's defaults are %v", defaults)
	}
	return &weekKube{
		defaults: defaults, rds: map[string]*otcv1.Rds{}, raps: map[string]*v1alpha1.RdsAutopilot{},
		cachedRds: map[string]*otcv1.Rds{}, cachedRaps: map[string]*v1alpha1.RdsAutopilot{},
	}
}

// schemaDefault is what an API server fills in; nil where the schema has no default.
func schemaDefault(schema map[string]any) any {
	object, ok := schema["default"].(map[string]any)
	if !ok {
		return schema["default"]
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, of := range properties {
		if property, ok := of.(map[string]any); ok {
			if value := schemaDefault(property); value != nil {
				object[name] = value
			}
		}
	}
	return object
}

// stored is a value as an API server gives it back: times lose what JSON has no place for.
func stored[T any](from T) T {
	var to T
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, &to)
	}
	if err != nil {
		panic(err) // our own types
	}
	return to
}

func (k *weekKube) next() string { k.version++; return strconv.Itoa(k.version) }

// come brings something to the cache and to the watchers, in order; k.mu is held.
func (k *weekKube) come(f func()) {
	k.coming = append(k.coming, f)
	time.AfterFunc(watchLag, func() {
		k.arriving.Lock()
		defer k.arriving.Unlock()
		k.mu.Lock()
		first := k.coming[0]
		k.coming = k.coming[1:]
		k.mu.Unlock()
		first()
	})
}

func (k *weekKube) putRds(r *otcv1.Rds) {
	r.ResourceVersion = k.next()
	k.rds[r.Name] = r
	now := r.DeepCopy()
	k.come(func() {
		k.mu.Lock()
		old, control := k.cachedRds[now.Name], k.control
		k.cachedRds[now.Name] = now
		k.mu.Unlock()
		if control != nil {
			control.TargetChanged(k8s.TargetOf(old), k8s.TargetOf(now))
		}
	})
}

func (k *weekKube) putRap(a *v1alpha1.RdsAutopilot) *v1alpha1.RdsAutopilot {
	a.ResourceVersion = k.next()
	k.raps[a.Name] = a
	now := a.DeepCopy()
	k.come(func() {
		k.mu.Lock()
		old, control := k.cachedRaps[now.Name], k.control
		k.cachedRaps[now.Name] = now
		k.mu.Unlock()
		if control != nil {
			control.AutopilotChanged(old, now)
		}
	})
	return a.DeepCopy()
}

// create makes an RdsAutopilot as the API server would: with the defaults of the CRD.
func (k *weekKube) create(name string, policy func(*v1alpha1.Spec), meta metav1.ObjectMeta) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.raps[name] != nil {
		return nil
	}
	a := &v1alpha1.RdsAutopilot{ObjectMeta: meta}
	data, err := json.Marshal(k.defaults)
	if err == nil {
		err = json.Unmarshal(data, &a.Spec)
	}
	if err != nil {
		return fmt.Errorf("fill in the defaults: %w", err)
	}
	a.Namespace, a.Name, a.Generation = weekNamespace, name, 1
	a.UID = types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", crc32.ChecksumIEEE([]byte(name))))
	if policy != nil {
		policy(&a.Spec)
	}
	k.putRap(a)
	return nil
}

// changeRds is a write of somebody else: of the operator or of a person.
func (k *weekKube) changeRds(name string, change func(*otcv1.Rds)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rds[name].DeepCopy()
	change(r)
	k.putRds(r)
}

func (k *weekKube) liveRds() []*otcv1.Rds {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copies(k.rds, nil)
}

type object[T any] interface {
	DeepCopy() T
	GetName() string
}

// copies are those that where holds for, or all where it is nil, sorted by name.
func copies[T object[T]](of map[string]T, where func(T) bool) []T {
	var all []T
	for _, o := range of {
		if where == nil || where(o) {
			all = append(all, o.DeepCopy())
		}
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

func (k *weekKube) Target(_, name string) *autopilot.Target {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k8s.TargetOf(k.cachedRds[name])
}

func (k *weekKube) TargetsByInstance(id string) (found []*autopilot.Target) {
	k.EachTarget(func(t *autopilot.Target) {
		if t.InstanceID == id {
			found = append(found, t)
		}
	})
	return found
}

func (k *weekKube) EachTarget(f func(*autopilot.Target)) {
	k.mu.Lock()
	all := copies(k.cachedRds, nil)
	k.mu.Unlock()
	for _, r := range all {
		f(k8s.TargetOf(r))
	}
}

func (k *weekKube) Autopilot(_, name string) (*v1alpha1.RdsAutopilot, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, ok := k.cachedRaps[name]
	return a.DeepCopy(), ok
}

func (k *weekKube) Autopilots() []*v1alpha1.RdsAutopilot {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copies(k.cachedRaps, nil)
}

func (k *weekKube) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	for _, a := range k.Autopilots() {
		f(a)
	}
}

func (k *weekKube) LiveAutopilots(context.Context) ([]*v1alpha1.RdsAutopilot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copies(k.raps, nil), nil
}

func (k *weekKube) CreateAutopilot(_ context.Context, t *autopilot.Target) error {
	return k.create(t.Name, nil, metav1.ObjectMeta{
		Finalizers:      []string{v1alpha1.Finalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: otcv1.GroupVersion().String(), Kind: otcv1.Kind, Name: t.Name, UID: t.UID}},
	})
}

func (k *weekKube) DeleteAutopilot(context.Context, *v1alpha1.RdsAutopilot) error {
	return errors.New("nothing is deleted in this week")
}

func (k *weekKube) RemoveFinalizer(context.Context, *v1alpha1.RdsAutopilot) error {
	return errors.New("nothing is deleted in this week")
}

// write changes an RdsAutopilot on top of the version that was read.
func (k *weekKube) write(read *v1alpha1.RdsAutopilot, change func(*v1alpha1.RdsAutopilot)) (*v1alpha1.RdsAutopilot, error) {
	time.Sleep(k.latency)
	k.mu.Lock()
	defer k.mu.Unlock()
	live := k.raps[read.Name]
	switch {
	case live == nil:
		return nil, autopilot.ErrGone
	case live.ResourceVersion != read.ResourceVersion:
		return nil, autopilot.ErrConflict
	}
	a := live.DeepCopy()
	change(a)
	return k.putRap(a), nil
}

func (k *weekKube) SetFinalizer(_ context.Context, a *v1alpha1.RdsAutopilot) (*v1alpha1.RdsAutopilot, error) {
	return k.write(a, func(a *v1alpha1.RdsAutopilot) { a.Finalizers = append(a.Finalizers, v1alpha1.Finalizer) })
}

func (k *weekKube) WriteStatus(_ context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error) {
	return k.write(read, func(a *v1alpha1.RdsAutopilot) {
		intake := a.Status.Intake
		a.Status = stored(next)
		a.Status.Intake = intake
	})
}

func (k *weekKube) WriteIntake(_ context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	_, err := k.write(read, func(a *v1alpha1.RdsAutopilot) { a.Status.Intake = stored(in) })
	return err
}

// patch writes one field of an Rds if test finds what was read, and returns the Rds as it is then.
func (k *weekKube) patch(read *autopilot.Target, p weekPatch, test func(*otcv1.Rds) bool, apply func(*otcv1.Rds)) (*autopilot.Target, error) {
	time.Sleep(k.latency)
	k.mu.Lock()
	defer k.mu.Unlock()
	live := k.rds[read.Name]
	if live == nil {
		return nil, autopilot.ErrGone
	}
	if live.UID != read.UID || live.Status.ID != read.InstanceID || !test(live) {
		return nil, autopilot.ErrConflict
	}
	if pending := k.raps[read.Name].Status.Pending; pending != nil {
		p.intent = *pending.DeepCopy()
	}
	p.rds = live.DeepCopy()
	r := live.DeepCopy()
	apply(r)
	if k.admit != nil {
		if err := k.admit(live, r); err != nil {
			return nil, err
		}
	}
	k.patched(p)
	if r.Spec != live.Spec { // else nothing is written, and the watchers get no event
		k.putRds(r)
	}
	return k8s.TargetOf(r), nil
}

func (k *weekKube) Apply(_ context.Context, read *autopilot.Target, i v1alpha1.Intent) (*autopilot.Target, error) {
	if i.Kind == v1alpha1.KindFlavor {
		return k.patch(read, weekPatch{flavor: i.To},
			func(live *otcv1.Rds) bool { return live.Spec.FlavorRef == read.Wanted.Flavor }, func(r *otcv1.Rds) { r.Spec.FlavorRef = i.To })
	}
	gb, err := strconv.Atoi(i.To)
	if err != nil {
		return nil, err
	}
	return k.patch(read, weekPatch{volumeGB: gb},
		func(live *otcv1.Rds) bool { return int(live.Spec.VolumeSize) == read.Wanted.VolumeGB }, func(r *otcv1.Rds) { r.Spec.VolumeSize = int32(gb) })
}

func (k *weekKube) Writer(context.Context, *autopilot.Target, v1alpha1.ChangeKind) (string, error) {
	return "", nil
}

func (k *weekKube) Event(t *autopilot.Target, _ *v1alpha1.RdsAutopilot, e autopilot.Event) {
	k.evented(t, e)
}

func (k *weekKube) ByTopic(urn string) []*v1alpha1.RdsAutopilot {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copies(k.cachedRaps, hasTopic(urn))
}

func (k *weekKube) ByTopicLive(_ context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copies(k.raps, hasTopic(urn)), nil
}

func (k *weekKube) Expects(string) bool { return true }

func (k *weekKube) SignedBefore(certURL string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.cachedRaps {
		if a.Status.Intake.SigningCertURL == certURL {
			return true
		}
	}
	return false
}

func hasTopic(urn string) func(*v1alpha1.RdsAutopilot) bool {
	return func(a *v1alpha1.RdsAutopilot) bool { return a.Status.Alarms.TopicURN == urn }
}

func (k *weekKube) LiveAutopilot(_ context.Context, _, name string) (*v1alpha1.RdsAutopilot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.raps[name]
	if a == nil {
		return nil, autopilot.ErrGone
	}
	return a.DeepCopy(), nil
}
