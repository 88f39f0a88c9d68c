// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// shared holds what the worlds of these tests share.
var shared world.Shared

func TestMain(m *testing.M) {
	if os.Getenv(floorVariable) != "" {
		fmt.Fprintln(os.Stderr, serveFloor())
		os.Exit(1)
	}
	os.Exit(shared.Main(m))
}

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a world for a test. At the long level it has the binary with the race detector. Tests that show nothing more with
// it call level.Short.
func start(t *testing.T, o world.Options) *world.World {
	t.Helper()
	t.Parallel()
	o.Race = level.IsLong(t)
	return shared.Start(t, o)
}

func waitArmed(t testing.TB, db *world.DB) *v1alpha1.RdsAutopilot {
	t.Helper()
	a, err := db.WaitAutopilot(world.Within(t), "it is armed", world.Armed)
	must(t, err)
	return a
}

// noCooldown is a policy whose flavors may change at once.
const noCooldown = `{"spec":{"flavor":{"cooldownSeconds":0}}}`

func TestSignedAlarmsGrowDatabases(t *testing.T) {
	w := start(t, world.Options{})
	p := w.MustServe(t)
	ctx := world.Within(t)
	disk := w.MustAdd(t, world.Database{Name: "disk", Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	cpu := w.MustAdd(t, world.Database{Name: "cpu", Flavor: "rds.mysql.n1.2xlarge.4.ha", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	memory := w.MustAdd(t, world.Database{Name: "memory", Flavor: "rds.pg.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	for _, db := range []*world.DB{disk, cpu, memory} {
		waitArmed(t, db)
		must(t, db.PatchAutopilot(ctx, noCooldown))
	}
	if err := errors.Join(disk.SetWorkload(simcloud.Workload{UsedGB: 33}), cpu.SetWorkload(simcloud.Workload{UsedGB: 10, CPUDemand: 7.8}),
		memory.SetWorkload(simcloud.Workload{UsedGB: 10, MemoryDemandGB: 7.8})); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		db         *world.DB
		kind       v1alpha1.ChangeKind
		metric     v1alpha1.Metric
		from, to   string
		volumeGB   int
		flavorCode string
	}{
		{disk, v1alpha1.KindVolume, v1alpha1.MetricStorage, "40", "50", 50, "rds.mysql.n1.large.4"},
		// The next flavor after 8 vCPUs has 16, is Ha and is available in both zones. The family n1 ends at 8.
		{cpu, v1alpha1.KindFlavor, v1alpha1.MetricCPU, "rds.mysql.n1.2xlarge.4.ha", "rds.mysql.x1.4xlarge.2.ha", 100, "rds.mysql.x1.4xlarge.2.ha"},
		{memory, v1alpha1.KindFlavor, v1alpha1.MetricMemory, "rds.pg.n1.large.4", "rds.pg.n1.xlarge.4", 100, "rds.pg.n1.xlarge.4"},
	} {
		a, err := tc.db.WaitAutopilot(ctx, "the change is completed and the alarm is over", func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.Changes) > 0 && a.Status.Changes[0].State == v1alpha1.StateCompleted && state(a, tc.metric) == v1alpha1.StateOK
		})
		must(t, err)
		if ch := a.Status.Changes; len(ch) != 1 || ch[0].Kind != tc.kind || ch[0].From != tc.from || ch[0].To != tc.to || ch[0].By != v1alpha1.ByAutopilot || ch[0].State != v1alpha1.StateCompleted {
			t.Errorf("%s: changes %+v, want one from %s to %s", tc.db.Name, ch, tc.from, tc.to)
		}
		if inst := tc.db.Instance(); inst.VolumeGB != tc.volumeGB || inst.Flavor != tc.flavorCode {
			t.Errorf("%s: the cloud has %d GB and %s", tc.db.Name, inst.VolumeGB, inst.Flavor)
		}
		if !slices.ContainsFunc(a.Status.Decisions, func(d v1alpha1.DecisionRecord) bool {
			return d.Metric == tc.metric && d.Reason == "AlarmInForce" && d.To == tc.to && d.Message != ""
		}) {
			t.Errorf("%s: decisions %+v", tc.db.Name, a.Status.Decisions)
		}
		rds, err := tc.db.Rds(ctx)
		must(t, err)
		if rds.Spec.Autopilot != nil { // the archived operator drops it
			t.Error("the operator did not drop spec.autopilot")
		}
	}
	if r, ok := disk.Rule(v1alpha1.MetricStorage); !ok || r.Condition.Value != 77 {
		t.Errorf("the storage rule of a 50 GB volume is %+v, want a threshold of 77 %%", r.Condition)
	}
	metrics, err := p.Metrics(ctx)
	must(t, err)
	for _, m := range []struct {
		name   string
		labels []string
		least  float64
	}{
		// A message whose answer was lost is a duplicate when it comes again, so the counts are lower bounds.
		{"rds_autopilot_notifications_total", []string{"type=SubscriptionConfirmation", "result=confirmed"}, 1},
		{"rds_autopilot_notifications_total", []string{"type=Notification", "result=stored"}, 1},
		{"rds_autopilot_decisions_total", []string{"metric=storage", "action=GrowVolume", "reason=AlarmInForce"}, 1},
		{"rds_autopilot_decisions_total", []string{"metric=cpu", "action=ChangeFlavor", "reason=AlarmInForce"}, 1},
		{"rds_autopilot_alarm_to_patch_seconds_count", nil, 3},
		{"rds_autopilot_autopilots", []string{"armed=true"}, 3},
		{"rds_autopilot_leader", nil, 1},
		{"rds_autopilot_build_info", nil, 1},
		{"rds_autopilot_last_sweep_timestamp_seconds", nil, 1},
		{"rds_autopilot_cloud_requests_total", []string{"cloud_service=ces"}, 1},
	} {
		if got := metrics.Sum(m.name, m.labels...); got < m.least {
			t.Errorf("%s %v is %g, want at least %g", m.name, m.labels, got, m.least)
		}
	}
}

func state(a *v1alpha1.RdsAutopilot, m v1alpha1.Metric) v1alpha1.State {
	for _, r := range a.Status.Alarms.Rules {
		if r.Metric == m {
			return r.State
		}
	}
	return ""
}

func TestProcessReportsWhyItCannotStart(t *testing.T) {
	level.Short(t)
	w := start(t, world.Options{})
	malformed, unreachable := filepath.Join(t.TempDir(), "clouds.yaml"), filepath.Join(t.TempDir(), "kubeconfig")
	err := errors.Join(os.WriteFile(malformed, []byte("clouds: {otc: {auth: {password: wrong-password"), 0o600),
		apiserver.WriteKubeconfig(unreachable, &rest.Config{Host: "http://127.0.0.1:1"}))
	must(t, err)
	for _, tc := range []struct {
		name string
		args []string
		env  []string
		code int
		want string // in the last line
	}{
		{"no public URL", []string{"serve"}, nil, 2, "--public-url"},
		{"no such kubeconfig", append(w.ServeArgs(), "--kubeconfig", "/nonexistent"), nil, 1, "--kubeconfig"},
		{"an API server that is not there", append(w.ServeArgs(), "--kubeconfig", unreachable), nil, 1, "Kubernetes"},
		{"a malformed clouds.yaml", w.ServeArgs(), []string{"OS_CLOUD=otc", "OS_CLIENT_CONFIG_FILE=" + malformed}, 1, "clouds.yaml"},
		{"an address in use", append(w.ServeArgs(), "--webhook-addr", strings.TrimPrefix(w.Ingress.URL, "http://")), nil, 1, "--webhook-addr"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := w.Run(world.Within(t), tc.args, tc.env)
			must(t, err)
			code, err := p.Wait(world.Within(t))
			if err != nil || code != tc.code {
				t.Errorf("exit code %d, %v, want %d", code, err, tc.code)
			}
			lines := p.Lines()
			if len(lines) == 0 || !strings.Contains(lines[len(lines)-1].Raw, tc.want) || strings.Contains(lines[len(lines)-1].Raw, "wrong-password") {
				t.Errorf("output %+v, want %q in the last line", lines, tc.want)
			}
		})
	}
}

// doctorsName is that of the RdsAutopilot with which doctor rehearses.
const doctorsName = "rds-autopilot-doctor"

// The doctor is the real binary, as a process of its own, with the shipped rights where the API server knows any.
func TestDoctorSucceedsAndLeavesNothingAfterAnySignal(t *testing.T) {
	level.Long(t)
	t.Parallel()
	w := shared.Start(t, world.Options{})
	w.MustServe(t).MustLead(t)
	ctx := world.Within(t)
	load := simcloud.Workload{UsedGB: 40, CPUDemand: 0.6}
	db := w.MustAdd(t, world.Database{Name: "db", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: load, Autopilot: true})
	waitArmed(t, db)
	if _, err := w.Cloud.AddInstance(simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: load}); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(w.Kube.Config())
	must(t, err)
	succeed := func() {
		t.Helper()
		p, err := w.Run(ctx, w.DoctorArgs(), nil)
		must(t, err)
		code, err := p.Wait(ctx)
		if err != nil || code != 0 || !strings.Contains(logOf(p), "ok       decision") {
			t.Errorf("exit code %d, %v:\n%s", code, err, logOf(p))
		}
	}
	leavesNothing := func(after string) {
		t.Helper()
		// An interrupted run may end while the service still creates the rules of its object, which it then removes.
		err := world.Eventually(ctx, "no rule is left", func(context.Context) (bool, error) {
			return !slices.ContainsFunc(w.Cloud.Rules(), func(r simcloud.Rule) bool { return strings.Contains(r.Name, doctorsName) }), nil
		})
		if err != nil {
			t.Errorf("after %s: %v", after, err)
		}
		_, err = client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(w.Namespace).Get(ctx, doctorsName, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("after %s, the RdsAutopilot is left: %v", after, err)
		}
	}
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		p, err := w.Begin(ctx, w.DoctorArgs()) // the bubble interrupts it at other steps
		must(t, err)
		if _, err := p.WaitLine(ctx, "created", func(l world.Line) bool { return strings.HasPrefix(l.Raw, "ok       created") }); err != nil {
			t.Fatal(err)
		}
		must(t, p.Signal(sent))
		if code, err := p.Wait(ctx); err != nil || code == 0 {
			t.Errorf("%v: exit code %d, %v:\n%s", sent, code, err, logOf(p))
		}
		if sent == syscall.SIGKILL {
			succeed() // the next run removes what is left
		}
		leavesNothing(sent.String())
	}
}

func stopping(l world.Line) bool { return l.Msg == "stopping" }

func TestDrainingReplicaAnswersAndReleasesTheLease(t *testing.T) {
	w := start(t, world.Options{})
	first, err := w.Serve(world.Within(t), "--drain-delay", "1m")
	must(t, err)
	first.MustLead(t)
	second := w.MustServe(t)
	must(t, first.Signal(syscall.SIGTERM))
	if _, err := first.WaitLine(world.Within(t), "it stops", stopping); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/metrics": 200} {
		if status, _, err := first.Get(world.Within(t), path); err != nil || status != want {
			t.Errorf("draining: %s: %d, %v, want %d", path, status, err, want)
		}
	}
	second.MustLead(t)
	res, err := http.Post(first.WebhookURL+"/smn", "text/plain", strings.NewReader("alarm!"))
	if err != nil {
		t.Fatalf("draining it does not answer any more: %v", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest || !res.Close {
		t.Errorf("draining: status %d, connection closed: %t", res.StatusCode, res.Close)
	}
	if m, err := first.Metrics(world.Within(t)); err != nil || m.Sum("rds_autopilot_leader") != 0 {
		t.Errorf("draining it says that it leads, %v", err)
	}

	// Nobody wants to wait any longer.
	must(t, first.Signal(syscall.SIGTERM))
	if code, err := first.Wait(world.Within(t)); err != nil || code == 0 {
		t.Errorf("exit code %d, %v, want the end that a second signal makes", code, err)
	}
}

// A person looks at a database while the cloud hangs. That must not make the end of the process a failure.
func TestPageThatWaitsForTheCloudDoesNotFailTheExit(t *testing.T) {
	asked := make(chan struct{}, 1)
	o := world.Options{}
	o.Cloud.Fault = func(r *http.Request) *simcloud.Fault {
		body, _ := io.ReadAll(r.Body) // an error means that the client has gone
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"period":"300"`)) { // the averages of the plots
			return nil
		}
		asked <- struct{}{}
		return &simcloud.Fault{Hang: true}
	}
	w := start(t, o)
	p := w.MustServe(t, "--drain-delay", "0s")
	db := w.MustAdd(t, world.Database{Name: "seen", Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Autopilot: true})
	waitArmed(t, db)
	status := make(chan int, 1)
	go func() {
		code, _, _ := p.Get(world.Within(t), "/api/databases/"+db.Namespace+"/"+db.Name+"/series") // 0 after an error
		status <- code
	}()
	<-asked
	must(t, p.Signal(syscall.SIGTERM))
	if code, err := p.Wait(world.Within(t)); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("the page got %d", got)
	}
}

func TestInFlightMessagesAreAnsweredBeforeExit(t *testing.T) {
	w := start(t, world.Options{})
	p := w.MustServe(t, "--drain-delay", "0s")
	conn, err := new(net.Dialer).DialContext(world.Within(t), "tcp", strings.TrimPrefix(p.WebhookURL, "http://"))
	must(t, err)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	body := "alarm!"
	fmt.Fprintf(conn, "POST /smn HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the receiver reads the body
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	must(t, p.Signal(syscall.SIGTERM))
	if _, err := p.WaitLine(world.Within(t), "it stops", stopping); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, body)
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusServiceUnavailable { // 503 on a slow machine
		t.Errorf("status %d", res.StatusCode)
	}
	if code, err := p.Wait(world.Within(t)); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
}
