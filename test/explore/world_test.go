// SPDX-License-Identifier: Apache-2.0

// Package explore tries every order of events around the pure parts of the service, breadth first, without I/O.
package explore

import (
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

const (
	volume, flavor = v1alpha1.KindVolume, v1alpha1.KindFlavor
	ours, others   = v1alpha1.ByAutopilot, v1alpha1.ByOther
	stepTime       = 10 * time.Second // how long each step takes
	firstGB, capGB = 100, 130
)

// settings are what does not change in a world.
type settings struct {
	name      string
	kinds     []v1alpha1.ChangeKind // what the load may need
	hasRds    bool
	databases int        // that share one place of --max-flavor-changes
	budget    int32      // maxChangesPerDay
	starts    [][]string // beginnings of stories, which exploration continues
}

// world is a page of plain data. Copies share what they refer to, so that a step replaces it and never modifies it.
type world struct {
	*settings
	now    time.Time
	all    []database
	broken string // the promise that the last step has broken
}

// database is one database, with its Rds, and what really happened to it.
type database struct {
	rap    object
	former object // before its last write: what another leader may still have
	memory memory
	flight *flight // an answer that is on its way

	spec, formerSpec autopilot.Wanted // of the Rds; an operator may still apply the former one
	has              autopilot.Wanted // in the cloud
	wrote, made      authors          // who wrote the spec, and who requested what the cloud has
	isGone           bool
	job              job
	load, measured   load
	measuredTime     time.Time
	series           series

	attempts            []attempt   // oldest first
	madeTime, restarted time.Time   // when our last flavor was made; the same once a check has seen that flavor
	resets              []time.Time // when another writer took our size back, in a row, before the cloud had it
}

// authors are who wrote a size, and who wrote a flavor.
type authors struct{ size, flavor v1alpha1.Author }

func (a *authors) of(kind v1alpha1.ChangeKind) *v1alpha1.Author {
	if kind == volume {
		return &a.size
	}
	return &a.flavor
}

type load struct {
	usedGB float64
	isBusy bool // the CPU
}

// object is an RdsAutopilot.
type object struct {
	version, generation int64
	mode                v1alpha1.Mode
	maxGB               int32
	status              v1alpha1.Status
}

// memory is what the process remembers. A kill clears it.
type memory struct {
	accepted             *metav1.MicroTime
	gb                   int
	lastSeen, formerSeen time.Time
}

// job is the last job of the cloud.
type job struct {
	id, to               string
	kind                 v1alpha1.ChangeKind
	by                   v1alpha1.Author
	isRunning, isVisible bool // visible: the instance is MODIFYING
	state                autopilot.JobState
	began, ended         time.Time
}

// attempt is a request of ours.
type attempt struct {
	kind                v1alpha1.ChangeKind
	to                  string
	at, evidence, first time.Time    // first: the first attempt of the same change
	known               change.Event // Rejected or Unsent once the service knows it; else Checked: it may have begun
	generation          int64
	hasArrived, isMade  bool
}

// flight is an answer that the process has not recorded yet.
type flight struct {
	answer record.Answer
	c      autopilot.Case
}

// series says what Cloud Eye has: values, none, or some that cannot be true.
type series byte

const (
	valid series = iota
	missing
	invalid
)

// sold are the flavors of the cloud. The default cap allows all but the last.
func sold() []flavors.Flavor { return cases.Catalogue()[:4] }

func newWorld(set *settings) world {
	w := world{settings: set, now: cases.Noon()}
	for range set.databases {
		s := cases.Quiet().Status
		has := autopilot.Wanted{VolumeGB: firstGB, Flavor: sold()[0].Code}
		s.Instance.Flavor, s.Baseline = has.Flavor, &v1alpha1.Baseline{VolumeGB: firstGB, VCPUs: 2, MemoryGB: 8}
		d := database{spec: has, formerSpec: has, has: has, wrote: authors{others, others}, made: authors{others, others},
			rap: object{version: 1, generation: 1, mode: v1alpha1.ModeAuto, maxGB: capGB, status: s}}
		d.former = d.rap
		d.setLoad(w.now, load{usedGB: firstGB / 2})
		w.all = append(w.all, d)
	}
	return w
}

// instance returns the instance as the cloud reports it; nil if it is gone.
func (d *database) instance() *autopilot.Instance {
	if d.isGone {
		return nil
	}
	f, _ := flavors.Find(sold(), d.has.Flavor)
	status := autopilot.StatusActive
	if d.job.isRunning && d.job.isVisible {
		status = "MODIFYING"
	} else if d.load.usedGB >= autopilot.ReadOnlyAt(d.has.VolumeGB) {
		status = autopilot.StatusStorageFull
	}
	return &autopilot.Instance{ID: "id", Status: status, Engine: "MySQL", Version: "8.0", Mode: "single", Flavor: f.Code, VCPUs: f.VCPUs,
		MemoryGB: f.MemoryGB, VolumeGB: d.has.VolumeGB, Zones: []string{"eu-de-01", "eu-de-02"}}
}

func (d *database) setLoad(now time.Time, l load) { d.load, d.measured, d.measuredTime = l, l, now }

// write stores the next version of an object as the API server does: only over the version that was read. It returns false
// on a conflict.
func (d *database) write(read, next object) bool {
	if read.version != d.rap.version {
		return false
	}
	next.version++
	d.former, d.rap = d.rap, next
	return true
}

// setPolicy stores a policy that a person has changed.
func (d *database) setPolicy(mode v1alpha1.Mode, maxGB int32) {
	next := d.rap
	next.generation, next.mode, next.maxGB = next.generation+1, mode, maxGB
	d.write(d.rap, next)
	d.resets = nil
}

// request writes a size or flavor into the Rds.
func (d *database) request(kind v1alpha1.ChangeKind, to string, by v1alpha1.Author) {
	d.formerSpec, *d.wrote.of(kind) = d.spec, by
	if kind == volume {
		d.spec.VolumeGB = autopilot.Gigabytes(to)
	} else {
		d.spec.Flavor = to
	}
}

// isOpen reports whether the Rds requests what the cloud does not have.
func (d *database) isOpen(kind v1alpha1.ChangeKind) bool {
	return kind == flavor && d.spec.Flavor != d.has.Flavor || kind == volume && d.spec.VolumeGB > d.has.VolumeGB
}

// begin starts a job of the cloud. It returns false if one is running.
func (d *database) begin(now time.Time, kind v1alpha1.ChangeKind, to string, by v1alpha1.Author, isVisible bool) bool {
	if d.job.isRunning || d.isGone {
		return false
	}
	d.job = job{id: now.String(), kind: kind, to: to, by: by, began: now, isRunning: true, isVisible: isVisible}
	return true
}

// end ends the job that runs. A job may end without an effect.
func (d *database) end(now time.Time, state autopilot.JobState, hasEffect bool) {
	j := &d.job
	j.isRunning, j.state, j.ended = false, state, now
	if !hasEffect {
		return
	}
	*d.made.of(j.kind) = j.by
	if j.kind == volume {
		d.has.VolumeGB, d.resets = max(d.has.VolumeGB, autopilot.Gigabytes(j.to)), nil
		return
	}
	d.has.Flavor = j.to
	// An operator that makes the same flavor again later does that by itself.
	if n := len(d.attempts) - 1; j.by == ours && n >= 0 && d.attempts[n].to == j.to && !d.attempts[n].isMade {
		d.madeTime, d.attempts = now, slices.Clone(d.attempts)
		d.attempts[n].isMade = true
	}
}

// form computes a hash of a state in normal form: times are ages in classes, and texts and versions are left out.
type form struct {
	hash   uint64
	now    time.Time
	fields map[reflect.Type][]int // that count
}

func (f *form) add(n uint64) { f.hash = (f.hash ^ n) * 1099511628211 }

func (f *form) addValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if f.add(7); !v.IsNil() {
			f.addValue(v.Elem())
		}
	case reflect.Slice:
		f.add(uint64(v.Len()))
		for i := range v.Len() {
			f.addValue(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			f.add(f.age(v.Field(1).Int())) // seconds since the year 1
			return
		}
		for _, i := range f.fieldsOf(v.Type()) {
			f.addValue(v.Field(i))
		}
	case reflect.String:
		for i := range v.Len() {
			f.add(uint64(v.String()[i]))
		}
		f.add(8)
	case reflect.Bool:
		f.add(map[bool]uint64{true: 1}[v.Bool()])
	case reflect.Float64:
		f.add(uint64(v.Float()))
	case reflect.Uint8:
		f.add(v.Uint())
	default:
		f.add(uint64(v.Int()))
	}
}

// fieldsOf returns the fields of a type that count.
func (f *form) fieldsOf(t reflect.Type) []int {
	if known, ok := f.fields[t]; ok {
		return known
	}
	f.fields[t] = nil
	for i := range t.NumField() {
		switch t.Field(i).Name {
		case "settings", "now", "broken", "former", "answer", "c", "formerSeen", "version", "generation", "Generation", "ObservedGeneration",
			"Decisions", "Warned", "Summary", "Alarms", "Intake", "Baseline", "Used", "Message", "LastTransitionTime", "EvidenceTime", "evidence",
			"ValuePercent", "JobID", "Metrics", "id", "ID", "first", "began", "Zones":
		default:
			f.fields[t] = append(f.fields[t], i)
		}
	}
	return f.fields[t]
}

func (f *form) age(seconds int64) uint64 {
	const minute, hour, day = 60, 3600, 86400
	age := reflect.ValueOf(f.now).Field(1).Int() - seconds
	for i, most := range [...]int64{-10 * minute, -minute, 0, minute, 2 * minute, 10 * minute, 15 * minute, hour, 2 * hour, day, 7 * day} {
		if age < most {
			return uint64(i)
		}
	}
	return 99
}
