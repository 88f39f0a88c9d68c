// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The flavors of the rows: what a database has, what it had before, and what CPU or memory asks for.
const (
	former     = "rds.mysql.n1.large.4"   // 2 vCPUs, 8 GB
	present    = "rds.mysql.n1.xlarge.4"  // 4 vCPUs, 16 GB
	nextCPU    = "rds.mysql.n1.2xlarge.2" // 8 vCPUs, 16 GB
	nextMemory = "rds.mysql.n1.2xlarge.4" // 8 vCPUs, 32 GB
)

// scene is a database as a row wants it, staged from outside before the service runs.
type scene struct {
	world.Database
	bears  map[v1alpha1.Metric]float64 // percent of what it has
	spec   v1alpha1.Spec
	status v1alpha1.Status        // as if the service had looked after it before
	asks   map[string]any         // what the spec of its Rds asks for, where that is not what the instance has
	is     func(*otcsim.Instance) // what else is true of the instance
	// more is what is in the cloud or in the cluster beside it.
	more func(*decisions, *world.DB) error
	// fault is what the cloud answers to an operation on this instance.
	fault map[string]otcsim.Fault
	// rule is what Cloud Eye says of the row's metric before the service looks; empty: whatever it may be.
	rule    otcsim.RuleState
	message *posted // comes by hand; its load is quiet
}

// posted is an alarm that is posted once the rules are there, whatever Cloud Eye says.
type posted struct {
	metric       v1alpha1.Metric
	percent      float64
	at, measured time.Duration // ago
	noValue      bool
	unconfirmed  bool // Cloud Eye does not answer
}

// quiet is a database with nothing wrong: 100 GB, 4 vCPUs, ACTIVE for an hour.
func quiet() *scene {
	s := &scene{Database: world.Database{Flavor: present, VolumeGB: 100}, bears: map[v1alpha1.Metric]float64{v1alpha1.MetricStorage: 50}}
	s.spec.Apply = v1alpha1.ApplyCloud
	s.spec.Storage.Alarm.Count = 1 // or each row waits for minutes of the cloud, or a quarter of an hour
	s.spec.Flavor.Alarm = v1alpha1.FlavorAlarm{PeriodSeconds: 1, Count: 1}
	activeFor(time.Hour)(s)
	return s
}

// settle completes the scene by what the instance is in the end.
func (s *scene) settle(in otcsim.Instance) {
	seen := s.status.Instance
	seen.ID, seen.Status, seen.VolumeGB, seen.Flavor = in.ID, in.Status, int32(in.VolumeGB), in.Flavor
	if s.status.Baseline == nil {
		s.status.Baseline = &v1alpha1.Baseline{VolumeGB: seen.VolumeGB, Flavor: in.Flavor, VCPUs: int32(in.VCPUs), MemoryGB: int32(in.MemoryGB)}
	}
}

// load is what the instance bears.
func (s *scene) load(in otcsim.Instance) otcsim.Workload {
	share := func(m v1alpha1.Metric, of int) float64 { return s.bears[m] * float64(of) / 100 }
	return otcsim.Workload{
		UsedGB: share(v1alpha1.MetricStorage, in.VolumeGB), CPUDemand: share(v1alpha1.MetricCPU, in.VCPUs), MemoryDemandGB: share(v1alpha1.MetricMemory, in.MemoryGB),
	}
}

// What follows alters a scene as the tables of package autopilot alter a case. Times leave room for a slow machine.

func all(alter ...func(*scene)) func(*scene) {
	return func(s *scene) {
		for _, f := range alter {
			f(s)
		}
	}
}

func bears(m v1alpha1.Metric, percent float64) func(*scene) {
	return func(s *scene) { s.bears[m] = percent }
}

func disk(percent float64) func(*scene) { return bears(v1alpha1.MetricStorage, percent) }
func cpu(percent float64) func(*scene)  { return bears(v1alpha1.MetricCPU, percent) }
func mem(percent float64) func(*scene)  { return bears(v1alpha1.MetricMemory, percent) }

// volume is a database of that size.
func volume(gb int) func(*scene) { return func(s *scene) { s.VolumeGB = gb } }

func flavor(code string) func(*scene) { return func(s *scene) { s.Flavor = code } }

func mode(m v1alpha1.Mode) func(*scene) { return func(s *scene) { s.spec.Mode = m } }

func cooldown(seconds int32) func(*scene) {
	return func(s *scene) { s.spec.Flavor.CooldownSeconds = &seconds }
}

// window opens in that many days, for a whole day; 0 is every day.
func window(days int) func(*scene) {
	return func(s *scene) {
		s.spec.Flavor.Window = &v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "UTC"}
		if days > 0 {
			s.spec.Flavor.Window.Days = []v1alpha1.Day{v1alpha1.Day(time.Now().UTC().AddDate(0, 0, days).Format("Mon"))}
		}
	}
}

func instanceIn(status string) func(*scene) {
	return func(s *scene) { s.is = func(in *otcsim.Instance) { in.Status = status } }
}

// flavored is an instance whose flavor somebody has changed; the Rds does not know.
func flavored(code string) func(*scene) {
	return func(s *scene) { s.is = func(in *otcsim.Instance) { in.Flavor = code } }
}

// failsOnce is an instance whose next job the cloud does not bring to its end.
func failsOnce(s *scene) { s.is = func(in *otcsim.Instance) { in.FailingJobs = 1 } }

// early raises the alarm before the service looks for the first time.
func early(s *scene) { s.rule = otcsim.StateAlarm }

func ago(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(time.Now().Add(-d)) }

func activeFor(d time.Duration) func(*scene) {
	return func(s *scene) {
		s.status.Instance = &v1alpha1.Instance{ActiveSince: new(metav1.NewTime(time.Now().Add(-d)))}
	}
}

// asks is an Rds that asks for something else than the instance has.
func asks(field string, value any) func(*scene) {
	return func(s *scene) { s.asks = map[string]any{field: value} }
}

// unfulfilledFor is what somebody else put into the Rds that long ago.
func unfulfilledFor(d time.Duration, kind v1alpha1.ChangeKind, field string, value any) func(*scene) {
	return all(asks(field, value), func(s *scene) {
		s.status.Unfulfilled = []v1alpha1.Unfulfilled{{Kind: kind, To: fmt.Sprint(value), SinceTime: metav1.NewTime(time.Now().Add(-d))}}
	})
}

// pending is a change of ours that was asked for that long ago, by a process that has ended since.
func pending(kind v1alpha1.ChangeKind, from, to string, d time.Duration) func(*scene) {
	return func(s *scene) {
		at, metric := ago(d), v1alpha1.MetricStorage
		if kind == v1alpha1.KindFlavor {
			metric = v1alpha1.MetricCPU
		}
		s.status.Pending = &v1alpha1.Intent{
			Kind: kind, From: from, To: to, Metrics: []v1alpha1.Metric{metric}, ValuePercent: "95.0", Message: "Decided before this process began", EvidenceTime: at, DecisionTime: at, AskedTime: &at, Generation: 1,
		}
	}
}

func pendingVolume(d time.Duration) func(*scene) {
	return all(pending(v1alpha1.KindVolume, "100", "110", d), asks("volumesize", 110))
}

func pendingFlavor(d time.Duration) func(*scene) {
	return all(pending(v1alpha1.KindFlavor, present, nextCPU, d), asks("flavorref", nextCPU))
}

// unasked is an intent that was stored, and then the process was killed.
func unasked(s *scene) { s.status.Pending.AskedTime, s.asks = nil, nil }

// endlessJob is a job that the cloud does not say anything about.
const endlessJob = "job-without-end"

// jobSince is such a job that began that long ago.
func jobSince(d time.Duration) func(*scene) {
	return func(s *scene) {
		s.status.Pending.JobID, s.status.Pending.JobTime = endlessJob, new(ago(d))
	}
}

// changed enters a completed change of ours for CPU that was decided that long ago.
func changed(d time.Duration, value string) func(*scene) {
	return func(s *scene) {
		at := ago(d)
		s.status.Changes = append(s.status.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: former, To: present, Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU},
			ValuePercent: value, DecisionTime: &at, CompletionTime: at, Outcome: v1alpha1.OutcomeCompleted, Generation: 1,
		})
	}
}

// newest alters the newest change.
func newest(alter func(*v1alpha1.Change)) func(*scene) {
	return func(s *scene) { alter(&s.status.Changes[0]) }
}

func lostOne(ch *v1alpha1.Change) { ch.Outcome = v1alpha1.OutcomeLost }

func byOther(ch *v1alpha1.Change) { ch.By = v1alpha1.ByOther }

func tookUntil(d time.Duration) func(*v1alpha1.Change) {
	return func(ch *v1alpha1.Change) { ch.CompletionTime = ago(d) }
}

// newSpec is a policy that was changed since.
func newSpec(s *scene) {
	for i := range s.status.Changes {
		s.status.Changes[i].Generation = 0
	}
}

// undone puts the former flavor in place of ours, in the Rds too.
func undone(s *scene) { s.Flavor = former }

// wentBack enters that the flavor became smaller that long ago.
func wentBack(d time.Duration, how v1alpha1.Outcome) func(*scene) {
	return func(s *scene) {
		s.status.Changes = slices.Insert(s.status.Changes, 0, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByOther, From: present, To: former, CompletionTime: ago(d), Outcome: how,
		})
	}
}

// soldOut makes every flavor of that engine, for Ha, sold out in a zone.
func soldOut(code, zone string) func(*scene) {
	return all(flavor(code), func(s *scene) {
		s.more = func(d *decisions, _ *world.DB) error {
			for _, other := range d.Cloud.FlavorCodes() {
				if strings.HasPrefix(other, code[:len("rds.pg")]) && strings.HasSuffix(other, ".ha") {
					d.Cloud.SetFlavorStatus(other, zone, otcsim.FlavorSoldOut)
				}
			}
			return nil
		}
	})
}

// replica gives it a read replica that is as large as it is now.
func replica(code string) func(*scene) {
	return all(flavor(code), func(s *scene) {
		s.more = func(d *decisions, db *world.DB) error {
			_, err := d.Cloud.AddInstance(otcsim.Instance{Name: db.Name + "-reader", Flavor: code + ".rr", VolumeGB: 100, ReplicaOf: db.ID})
			return err
		}
	})
}

// shareInstance is an instance that another object names as well.
func shareInstance(s *scene) {
	s.more = func(d *decisions, db *world.DB) error {
		other := *db
		other.Name += "-too"
		return other.CreateAutopilot(d.ctx, fmt.Sprintf(`{"apply":"Cloud","instanceID":%q}`, db.ID))
	}
}

func removeInstance(s *scene) {
	s.more = func(d *decisions, db *world.DB) error {
		d.Cloud.RemoveInstance(db.ID)
		return nil
	}
}

// refused is what the cloud says to that operation, whenever it is asked for it.
func refused(operation, how string) func(*scene) {
	return func(s *scene) {
		r := otcsim.Refusals()[how]
		body, _ := json.Marshal(map[string]string{"error_code": r.Code, "error_msg": r.Message}) // strings only: cannot fail
		s.fault = map[string]otcsim.Fault{operation: {Status: r.Status, Body: string(body), Header: http.Header{"Content-Type": {"application/json"}}}}
	}
}

// replyLost is a change that the cloud begins, and nobody hears of it.
func replyLost(operation string) func(*scene) {
	return func(s *scene) {
		s.fault = map[string]otcsim.Fault{operation: {Status: http.StatusGatewayTimeout, Apply: true}}
	}
}

// told is a message that comes by hand.
func told(m v1alpha1.Metric, percent float64, at, measured time.Duration) func(*scene) {
	return func(s *scene) { s.message = &posted{metric: m, percent: percent, at: at, measured: measured} }
}

// unconfirmed is one that comes while Cloud Eye does not answer.
func unconfirmed(m v1alpha1.Metric, percent float64, at, measured time.Duration) func(*scene) {
	return all(told(m, percent, at, measured), func(s *scene) { s.message.unconfirmed = true })
}
