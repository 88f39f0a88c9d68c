// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// row is one situation of a database and the decision that the service must take. Package autopilot tests all rows of the
// decision. The rows here show that the binary reads each kind of input and carries out or reports each kind of result.
type row struct {
	name     string
	stage    func(*scene)
	metric   v1alpha1.Metric // empty: the reason is that of the condition Armed
	reason   string
	to       []string // the sizes and flavors that the cloud must give it, each once
	unsolved bool     // the intent is still pending at the end
	withRds  bool     // the row makes no sense without an Rds
}

const (
	onStorage = v1alpha1.MetricStorage
	onCPU     = v1alpha1.MetricCPU
	onMemory  = v1alpha1.MetricMemory
	acts      = "AlarmInForce"

	former     = "rds.mysql.n1.large.4"   // 2 vCPUs, 8 GB
	present    = "rds.mysql.n1.xlarge.4"  // 4 vCPUs, 16 GB
	nextCPU    = "rds.mysql.n1.2xlarge.2" // 8 vCPUs, 16 GB
	nextMemory = "rds.mysql.n1.2xlarge.4" // 8 vCPUs, 32 GB
)

func decisionRows() []row {
	return []row{
		{name: "full volume grows", stage: load(onStorage, 93), metric: onStorage, reason: acts, to: []string{"110"}},
		{name: "busy CPU gets the next flavor", stage: load(onCPU, 95), metric: onCPU, reason: acts, to: []string{nextCPU}},
		{name: "full memory gets the next flavor", stage: load(onMemory, 95), metric: onMemory, reason: acts, to: []string{nextMemory}},
		{name: "storage goes before flavors", stage: all(cooldown(1), load(onCPU, 95), load(onStorage, 93)), metric: onCPU, reason: acts, to: []string{"110", nextCPU}},

		{name: "policy: at the cap", stage: all(maxGB(100), load(onStorage, 93)), metric: onStorage, reason: "CapReached"},
		{name: "policy: mode Recommend", stage: all(mode(v1alpha1.ModeRecommend), load(onStorage, 93)), metric: onStorage, reason: "Recommend"},
		{name: "policy: mode Off", stage: all(mode(v1alpha1.ModeOff), load(onStorage, 93)), reason: "NotEnabled"},
		{name: "policy: outside the window", stage: all(windowIn3Days, load(onCPU, 95)), metric: onCPU, reason: "OutsideWindow"},
		{name: "Rds: spec.autopilot is false", stage: all(rdsAsks("autopilot", false), load(onStorage, 93)), reason: "NotEnabled", withRds: true},
		{name: "Rds: asks for more than the cloud has", stage: all(rdsAsks("volumesize", 120), load(onStorage, 93)), metric: onStorage, reason: acts, to: []string{"120"}, withRds: true},

		{name: "status: cooldown since the last change", stage: all(changed(30*time.Minute), load(onCPU, 95)), metric: onCPU, reason: "Cooldown"},
		{name: "status: the budget of the day is spent", stage: all(changed(3*time.Hour), changed(20*time.Hour), load(onMemory, 95)), metric: onMemory, reason: "BudgetSpent"},
		{name: "status: an intent of an earlier process is carried out once", stage: all(pendingVolume, load(onStorage, 93)), metric: onStorage, to: []string{"110"}},

		{name: "cloud: the instance is busy", stage: all(instanceIn("MODIFYING"), load(onStorage, 93)), metric: onStorage, reason: "InstanceBusy"},
		{name: "cloud: another object names the instance later", stage: all(secondObject, load(onStorage, 93)), metric: onStorage, reason: acts, to: []string{"110"}},
		{name: "cloud: the quota refuses a size", stage: all(refused("EnlargeVolume", "quota"), load(onStorage, 93)), metric: onStorage, reason: "QuotaExceeded", unsolved: true},
		{name: "cloud: a flavor is sold out", stage: all(refused("ResizeFlavor", "sold out"), load(onCPU, 95)), metric: onCPU, reason: "SoldOut", unsolved: true},
		{name: "cloud: a job fails once", stage: all(firstJobFails, load(onStorage, 93)), metric: onStorage, reason: "JobFailed", to: []string{"110"}},
	}
}

// scene is the database of a row. It is staged from outside while no service runs.
type scene struct {
	world.Database
	bears  map[v1alpha1.Metric]float64 // percent of what the instance has
	spec   v1alpha1.Spec
	status v1alpha1.Status          // as an earlier process would have stored it
	asks   map[string]any           // fields of the Rds that differ from the instance
	alter  func(*simcloud.Instance) // changes the instance after it was armed
	more   func(*decisions, *world.DB) error
	fault  map[string]simcloud.Fault // the cloud's answer to an operation on this instance
}

// quietScene returns a database without an alarm: 100 GB, 4 vCPUs, ACTIVE for an hour.
func quietScene() *scene {
	s := &scene{Database: world.Database{Flavor: present, VolumeGB: 100}, bears: map[v1alpha1.Metric]float64{onStorage: 50}}
	s.spec.Apply = v1alpha1.ApplyCloud
	s.spec.Storage.Alarm.Count = 1 // with the default of 5, each row would take minutes of the cloud's time
	s.spec.Flavor.Alarm = v1alpha1.FlavorAlarm{PeriodSeconds: 1, Count: 1}
	s.status.Instance = &v1alpha1.Instance{ActiveSince: new(metav1.NewTime(time.Now().Add(-time.Hour)))}
	return s
}

// complete fills in what the status knows of the instance.
func (s *scene) complete(in simcloud.Instance) {
	seen := s.status.Instance
	seen.ID, seen.Status, seen.VolumeGB, seen.Flavor = in.ID, in.Status, int32(in.VolumeGB), in.Flavor
	s.status.Baseline = &v1alpha1.Baseline{VolumeGB: seen.VolumeGB, VCPUs: int32(in.VCPUs), MemoryGB: int32(in.MemoryGB)}
}

// workload returns the load of the scene in absolute numbers.
func (s *scene) workload(in simcloud.Instance) simcloud.Workload {
	share := func(m v1alpha1.Metric, of int) float64 { return s.bears[m] * float64(of) / 100 }
	return simcloud.Workload{UsedGB: share(onStorage, in.VolumeGB), CPUDemand: share(onCPU, in.VCPUs), MemoryDemandGB: share(onMemory, in.MemoryGB)}
}

func all(alter ...func(*scene)) func(*scene) {
	return func(s *scene) {
		for _, f := range alter {
			f(s)
		}
	}
}

func load(m v1alpha1.Metric, percent float64) func(*scene) {
	return func(s *scene) { s.bears[m] = percent }
}

func maxGB(gb int32) func(*scene) { return func(s *scene) { s.spec.Storage.MaxGB = gb } }

func mode(m v1alpha1.Mode) func(*scene) { return func(s *scene) { s.spec.Mode = m } }

func cooldown(seconds int32) func(*scene) {
	return func(s *scene) { s.spec.Flavor.CooldownSeconds = &seconds }
}

// windowIn3Days sets a window that opens in three days, for a whole day.
func windowIn3Days(s *scene) {
	day := v1alpha1.Day(time.Now().UTC().AddDate(0, 0, 3).Format("Mon"))
	s.spec.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: "00:00", End: "00:00", TimeZone: "UTC"}
}

func instanceIn(status string) func(*scene) {
	return func(s *scene) { s.alter = func(in *simcloud.Instance) { in.Status = status } }
}

func firstJobFails(s *scene) { s.alter = func(in *simcloud.Instance) { in.FailingJobs = 1 } }

// rdsAsks sets a field of the Rds that differs from the instance.
func rdsAsks(field string, value any) func(*scene) {
	return func(s *scene) { s.asks = map[string]any{field: value} }
}

// pendingVolume is the intent of a process that was killed before it asked the cloud.
func pendingVolume(s *scene) {
	at := metav1.NewMicroTime(time.Now().Add(-time.Minute))
	s.status.Pending = &v1alpha1.Intent{
		Kind: v1alpha1.KindVolume, From: "100", To: "110", Metrics: []v1alpha1.Metric{onStorage}, ValuePercent: "95.0",
		Message: "Decided by an earlier process", EvidenceTime: at, DecisionTime: at, Generation: 1,
	}
}

// changed adds a completed flavor change of the service that was decided that long ago.
func changed(ago time.Duration) func(*scene) {
	return func(s *scene) {
		at := metav1.NewMicroTime(time.Now().Add(-ago))
		s.status.Changes = append(s.status.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: former, To: present, Metrics: []v1alpha1.Metric{onCPU},
			ValuePercent: "95.0", DecisionTime: &at, CompletionTime: at, Outcome: v1alpha1.OutcomeCompleted, Generation: 1,
		})
	}
}

// secondObject makes another RdsAutopilot that names the same instance.
func secondObject(s *scene) {
	s.more = func(d *decisions, db *world.DB) error {
		other := *db
		other.Name += "-too"
		return other.CreateAutopilot(d.ctx, fmt.Sprintf(`{"apply":"Cloud","instanceID":%q}`, db.ID))
	}
}

// refused makes the cloud refuse an operation on this instance, always for the same cause.
func refused(operation, cause string) func(*scene) {
	return func(s *scene) {
		r := simcloud.Refusals()[cause]
		body, _ := json.Marshal(map[string]string{"error_code": r.Code, "error_msg": r.Message}) // strings only: cannot fail
		s.fault = map[string]simcloud.Fault{operation: {Status: r.Status, Body: string(body), Header: http.Header{"Content-Type": {"application/json"}}}}
	}
}
