// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// reads reads a simulated cloud at a limited rate, on the clock of a bubble.
type reads struct {
	*Cloud
	sim *simcloud.Cloud
}

func newReads(t *testing.T, rate float64, o simcloud.Options) reads {
	t.Helper()
	sim := simulate(t, o)
	return reads{connectSim(t, sim, sim.Env(), rate), sim}
}

// add adds n equal instances and returns their ids.
func (r reads) add(t *testing.T, n int) (ids []string) {
	t.Helper()
	for i := range n {
		in, err := r.sim.AddInstance(simcloud.Instance{
			Name: fmt.Sprint("db-", i), Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 50},
		})
		must(t, err)
		ids = append(ids, in.ID)
	}
	return ids
}

// 2,500 instances are 25 pages, and need 250 calls of evidence. At one request per second, reading them takes minutes,
// and must not fail.
func TestLongListAtLowRateIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 1, simcloud.Options{})
		ids := r.add(t, 2500)
		begin := time.Now()
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				inst, err := r.Instance(t.Context(), id, begin)
				if err != nil || inst == nil {
					t.Errorf("instance: %v, %v", inst, err)
					return
				}
				request := autopilot.EvidenceRequest{Names: []string{"rds001_cpu_util"}, PeriodSeconds: 300}
				for _, read := range r.Points(t.Context(), *inst, request) {
					if read.Err != nil {
						t.Errorf("evidence: %v", read.Err)
					}
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took < 274*time.Second {
			t.Errorf("took %s: the rate was not kept", took)
		}
	})
}

// The cloud may have a limit of one instance that the catalogue does not show.
func TestResizeListIsReadForEachInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault *simcloud.Fault
		r := newReads(t, 5, simcloud.Options{Fault: func(q *http.Request) *simcloud.Fault {
			if _, op := simcloud.OperationOf(q); op != "ListResizeFlavors" {
				return nil
			}
			return fault
		}})
		ids := r.add(t, 2)
		check := func(i int, want string) {
			t.Helper()
			codes, err := r.ResizeList(t.Context(), autopilot.Instance{ID: ids[i]})
			got := fmt.Sprint(codes, err)
			if refusal, isRefused := errors.AsType[*autopilot.RefusedError](err); isRefused {
				got = refusal.Message
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("instance %d: %s, want %s", i, got, want)
			}
		}
		for i, code := range []string{"rds.mysql.n1.xlarge.4", "rds.mysql.n1.2xlarge.4", "rds.mysql.n1.4xlarge.4"} {
			const body = `{"flavor_groups":[{"group_type":"general","compute_flavors":[{"code":%q}]}]}`
			fault = &simcloud.Fault{Status: 200, Body: fmt.Sprintf(body, code)}
			check(i%2, "["+code+"] <nil>")
		}
		for status, want := range map[int]string{400: "DBS.200040 not for this engine", 409: "[] rds", 500: "[] rds"} {
			fault = &simcloud.Fault{Status: status, Body: `{"error_code":"DBS.200040","error_msg":"not for this engine"}`}
			check(0, want)
		}
	})
}

// People copy a node's id from the console.
func TestIDOfANodeReturnsItsInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		id := r.add(t, 2)[1]
		inst, err := r.Instance(t.Context(), id, time.Time{})
		if err != nil || inst == nil || len(inst.NodeIDs) == 0 {
			t.Fatalf("%+v, %v", inst, err)
		}
		if of, err := r.Instance(t.Context(), inst.NodeIDs[0], time.Time{}); err != nil || of == nil || of.ID != id {
			t.Errorf("%+v, %v, want the instance %s", of, err, id)
		}
	})
}

// The catalogue is read every five minutes. While the cloud fails, the last one is used, whatever its age.
func TestCatalogueIsKeptWhileTheCloudFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := true
		r := newReads(t, 5, simcloud.Options{Fault: func(q *http.Request) *simcloud.Fault {
			if _, op := simcloud.OperationOf(q); op != "ListFlavors" || !refused {
				return nil
			}
			return &simcloud.Fault{Status: http.StatusForbidden, Body: `{}`}
		}})
		inst := autopilot.Instance{Engine: "MySQL", Version: "8.0"}
		check := func(when string, requests int) {
			t.Helper()
			list, err := r.Catalogue(t.Context(), inst)
			if n := r.sim.Count("rds", "ListFlavors"); err != nil || len(list) == 0 || n != requests {
				t.Errorf("%s: %d flavors, %v, %d requests; want %d", when, len(list), err, n, requests)
			}
		}
		for range 2 { // the second time without a request
			if _, err := r.Catalogue(t.Context(), inst); err == nil {
				t.Error("no error, although the cloud fails and there is no catalogue yet")
			}
		}
		refused = false
		time.Sleep(minUsable)
		check("first", 2)
		time.Sleep(catalogueUsableFor)
		check("five minutes later", 2)
		time.Sleep(time.Second)
		check("after five minutes", 3)
		time.Sleep(24 * time.Hour)
		refused = true
		check("while the cloud fails", 4)
	})
}

// All dimensions of an instance have the same volume, so the used space is found where there is data of it.
func TestUsedSpaceIsReadOnAnyDimensionThatHasData(t *testing.T) {
	for name, tc := range map[string]struct {
		nodesOnly bool
		dimension string
		primary   string // another one than the instance's
	}{
		"no rule":                         {false, "", ""},
		"no rule, data of the nodes only": {true, "", ""},
		"a rule on a node that is gone":   {true, "rds_instance_id:0123no01", ""},
		"data of the rule's node only":    {true, "rds_instance_id:%s", "0123no02"},
		"data of neither node":            {false, "rds_instance_id:0123no01", "0123no02"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newReads(t, 5, simcloud.Options{Settings: simcloud.Settings{NoInstanceLevelData: tc.nodesOnly}})
			id := r.add(t, 1)[0]
			time.Sleep(10 * time.Minute)
			inst, err := r.Instance(t.Context(), id, time.Time{})
			if err != nil || inst == nil {
				t.Fatalf("%v, %v", inst, err)
			}
			dimension := strings.Replace(tc.dimension, "%s", inst.Primary, 1)
			inst.Primary = cmp.Or(tc.primary, inst.Primary)
			const used = "rds048_disk_used_size"
			got := r.Points(t.Context(), *inst, autopilot.EvidenceRequest{Names: []string{used}, Dimension: dimension, PeriodSeconds: rawPeriod})
			if points := got[used].Points; len(points) == 0 || points[0].Value != 50 {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

func TestPastReadsAllSeriesOfADatabaseInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		id := r.add(t, 1)[0]
		must(t, r.sim.SetWorkload(id, simcloud.Workload{UsedGB: 60, CPUDemand: 1, MemoryDemandGB: 2}))
		time.Sleep(23 * time.Hour)
		r.sim.ResetRequests()
		since := time.Now().Add(-14 * 24 * time.Hour)
		p, err := r.Past(t.Context(), autopilot.Instance{ID: id, Engine: "MySQL"}, "", time.Hour, since)
		if n := r.sim.Count("ces", ""); n != 1 || err != nil {
			t.Errorf("%d requests, %v", n, err)
		}
		for name, of := range map[string]struct {
			points []autopilot.Point
			want   float64
		}{
			"used": {p.UsedGB, 60}, "size": {p.SizeGB, 100}, "storage": {p.Percent[v1alpha1.MetricStorage], 60},
			"cpu": {p.Percent[v1alpha1.MetricCPU], 50}, "memory": {p.Percent[v1alpha1.MetricMemory], 25},
		} {
			if n := len(of.points); n < 21 || n > 25 || of.points[n-1].Value != of.want {
				t.Errorf("%s: %d points, %v", name, n, of.points)
			}
		}
	})
}

// A wrong name, unit or dimension of a gauge fails here.
func TestWALIsReadInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		check := func(gauges map[string]float64, want autopilot.WAL) {
			t.Helper()
			in, err := r.sim.AddInstance(simcloud.Instance{
				Flavor: "rds.pg.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 92, Metrics: gauges},
			})
			must(t, err)
			time.Sleep(15 * time.Minute)
			r.sim.ResetRequests()
			got, err := r.WAL(t.Context(), autopilot.Instance{ID: in.ID, Engine: in.Engine, VolumeGB: in.VolumeGB}, "")
			if n := r.sim.Count("ces", ""); err != nil || got != want || n != 1 {
				t.Errorf("%+v with %d requests, %v; want %+v with one", got, n, err, want)
			}
		}
		check(map[string]float64{"rds040_transaction_logs_usage": 41 * 1024, "inactive_logical_replication_slot": 2},
			autopilot.WAL{GB: 41, InactiveSlots: 2})
		check(map[string]float64{"rds040_transaction_logs_usage": 512}, autopilot.WAL{GB: 0.5})
	})
}

func TestDimensionIsTheOneThatHasData(t *testing.T) {
	for flavor, want := range map[string][3]string{
		"rds.mysql.c2.medium":  {"MySQL", "rds_cluster_id", "rds_instance_id"},
		"rds.pg.n1.large.4.ha": {"PostgreSQL", "postgresql_cluster_id", "postgresql_instance_id"},
		"rds.mssql.n1.large.4": {"SQLServer", "rds_cluster_sqlserver_id", "rds_instance_sqlserver_id"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newReads(t, 1000, simcloud.Options{})
			in, err := r.sim.AddInstance(simcloud.Instance{Flavor: flavor, VolumeGB: 100})
			must(t, err)
			node := in.Nodes[0].ID
			check := func(when, primary, expected string) {
				t.Helper()
				got, err := r.Dimension(t.Context(), autopilot.Instance{ID: in.ID, Engine: want[0], Primary: primary})
				if got != expected || err != nil {
					t.Errorf("%s, %s: %s, %v; want %s", flavor, when, got, err, expected)
				}
			}
			onInstance, onNode := want[1]+":"+in.ID, want[2]+":"+node
			check("without any data", node, onInstance)
			time.Sleep(30 * time.Minute)
			r.sim.Step(t.Context())
			check("with data of both", node, onInstance)
			r.sim.Configure(func(s *simcloud.Settings) { s.NoInstanceLevelData = true })
			time.Sleep(23 * time.Hour)
			check("with data less than a day ago", node, onInstance)
			time.Sleep(time.Hour + time.Second)
			check("with data of the nodes only", node, onNode)
			check("with an unknown primary", "", onInstance)
			r.sim.Configure(func(s *simcloud.Settings) { s.NoInstanceLevelData = false })
			time.Sleep(seriesMissingFor - time.Minute)
			check("just after a list without the instance", node, onNode)
			time.Sleep(time.Minute + time.Second)
			check("with data of the instance again", node, onInstance)
		})
	}
}

// A change may have begun if its request was sent, also if the answer is missing.
func TestChangeReturnsWhetherTheRequestWasSent(t *testing.T) {
	larger := v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "110"}
	other := v1alpha1.Change{Kind: v1alpha1.KindFlavor, From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4"}
	notRequested := func(err error) bool { return errors.Is(err, autopilot.ErrNotRequested) }
	if _, refused := errors.AsType[*autopilot.RefusedError](refusal(&Error{Status: 408})); refused {
		t.Error("408 is a refusal, although the change may have begun")
	}
	for name, tc := range map[string]struct {
		failing string // operation that gets no answer
		intent  v1alpha1.Change
		status  string
		is      func(error) bool
		posts   int
	}{
		"the instance cannot be read": {"ListInstances", larger, "", notRequested, 0},
		"no answer to the request": {"EnlargeVolume", larger, "", func(err error) bool {
			_, refused := errors.AsType[*autopilot.RefusedError](err)
			return err != nil && !refused && !errors.Is(err, autopilot.ErrNotRequested) && !errors.Is(err, autopilot.ErrConflict)
		}, 1},
		"not ready":                       {"", larger, simcloud.StatusModifying, notRequested, 0},
		"turned off":                      {"", v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "120"}, "", notRequested, 0},
		"the instance has another flavor": {"", other, "", func(err error) bool { return notRequested(err) && errors.Is(err, autopilot.ErrConflict) }, 0},
		"an intent of another version":    {"", v1alpha1.Change{Kind: "Throughput"}, "", notRequested, 0},
		"requested":                       {"", larger, "", func(err error) bool { return err == nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReads(t, 5, simcloud.Options{Fault: func(q *http.Request) *simcloud.Fault {
					if _, op := simcloud.OperationOf(q); op == tc.failing {
						return &simcloud.Fault{Hang: true}
					}
					return nil
				}})
				id := r.add(t, 1)[0]
				if tc.status != "" {
					must(t, r.sim.ChangeInstance(id, func(in *simcloud.Instance) { in.Status = tc.status }))
				}
				confirm := func(context.Context) error {
					if r.sim.Count("rds", "ListInstances") == 0 {
						t.Error("the last look comes before a read")
					}
					if name == "turned off" {
						return autopilot.ErrConflict
					}
					return nil
				}
				job, err := r.Change(t.Context(), id, tc.intent, confirm)
				if !tc.is(err) || (job != "") != (err == nil) {
					t.Errorf("job %q, error %v", job, err)
				}
				n := r.sim.Count("rds", "EnlargeVolume") + r.sim.Count("rds", "ResizeFlavor")
				if n < tc.posts || tc.posts == 0 && n > 0 {
					t.Errorf("%d requests for a change, want %d", n, tc.posts)
				}
			})
		})
	}
}

// The list of instances may be older than the end of a job, so the caller must know when the job ended.
func TestJobHasItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{Settings: simcloud.Settings{EnlargeDuration: time.Minute}})
		id := r.add(t, 1)[0]
		begin := time.Now()
		job, err := r.Change(t.Context(), id, v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "110"}, nil)
		must(t, err)
		if j, err := r.Job(t.Context(), job); err != nil || j.State != autopilot.JobRunning || !j.EndTime.IsZero() {
			t.Errorf("running: %+v, %v", j, err)
		}
		time.Sleep(2 * time.Minute)
		j, err := r.Job(t.Context(), job)
		if took := j.EndTime.Sub(begin); err != nil || j.State != autopilot.JobDone || took < 59*time.Second || took > 61*time.Second {
			t.Errorf("done: %+v, after %s, %v", j, took, err)
		}
	})
}

// The codes and their status are those of RDS api: error_codes.rst, of captured answers, and of the Terraform provider.
func TestRefusalHasTheReasonOfItsCode(t *testing.T) {
	for _, tc := range []struct {
		status int
		codes  []string
		want   autopilot.Reason
	}{
		{http.StatusBadRequest, []string{"DBS.280450", "DBS.280239", "DBS.200053", "DBS.200054", "dbs.280239"}, autopilot.ReasonSoldOut},
		{http.StatusConflict, []string{"DBS.200011", "DBS.200452", "DBS.280816", "DBS.999999", ""}, autopilot.ReasonInstanceBusy},
		{http.StatusForbidden, []string{"DBS.212033"}, autopilot.ReasonInstanceBusy},
		{http.StatusForbidden, []string{"RDS.0011", ""}, autopilot.ReasonNotPermitted},
		{http.StatusBadRequest, []string{"DBS.200018", "DBS.200080", "DBS.200086", "DBS.200452", "DBS.200463", "DBS.200611",
			"DBS.201014", "DBS.201015", "DBS.201206", "DBS.280011", "DBS.280343", "DBS.280816"}, autopilot.ReasonInstanceBusy},
		{http.StatusConflict, []string{"DBS.200316"}, autopilot.ReasonStorageFull},
		{http.StatusForbidden, []string{"DBS.200046", "RDS.5035"}, autopilot.ReasonQuotaExceeded},
		{http.StatusPaymentRequired, []string{""}, autopilot.ReasonPaymentRequired},
		{http.StatusForbidden, []string{"CBC.30000010"}, autopilot.ReasonPaymentRequired},
		{http.StatusBadRequest, []string{"DBS.200306", "DBS.200308", ""}, autopilot.ReasonCloudRefused},
	} {
		for _, code := range tc.codes {
			err := refusal(&Error{Service: "rds", Status: tc.status, Code: code, Message: "The cloud's reason."})
			refused, ok := errors.AsType[*autopilot.RefusedError](err)
			if !ok || refused.Reason != tc.want {
				t.Errorf("%d %s: %+v, want %s", tc.status, code, refused, tc.want)
			}
		}
	}
}

// 300 jobs that are checked every 30 seconds leave most of the rate to other requests to RDS, and each of them is read.
func TestRunningJobsLeaveTheRateToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(t, 5, simcloud.Options{})
		const jobs = 300
		begin := time.Now()
		for check := range 20 {
			for i := range jobs { // each in a round of its own
				go func() {
					job, err := r.Job(t.Context(), fmt.Sprint("job-", i))
					if known := check > 5; err != nil || known && job.State != autopilot.JobUnknown { // the cloud has none of them
						t.Errorf("check %d of job %d: %+v, %v", check, i, job, err)
					}
				}()
			}
			time.Sleep(30 * time.Second)
		}
		length := time.Since(begin)
		if n, most := r.sim.Count("rds", ""), 2+int(2*length.Seconds()); n > most {
			t.Errorf("%d requests in %s, want at most %d", n, length, most)
		}
		time.Sleep(3 * time.Minute) // until the waiting reads have ended
	})
}
