package main_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// gate stands between the service and the API server, and kills the service at its first patch of an Rds: before the
// API server gets it, or after the API server has stored it and before the service hears of that.
type gate struct {
	*httptest.Server
	applied bool
	kill    chan func() error
	killed  chan error
	once    sync.Once
}

func newGate(t *testing.T, w *world.World, applied bool) *gate {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }, Transport: transport, FlushInterval: -1,
	}
	g := &gate{applied: applied, kill: make(chan func() error, 1), killed: make(chan error, 1)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/rdss/") {
			proxy.ServeHTTP(w, r)
			return
		}
		if g.applied {
			stored := httptest.NewRecorder()
			proxy.ServeHTTP(stored, r)
			if stored.Code != http.StatusOK {
				t.Errorf("the patch was answered %d: %s", stored.Code, stored.Body)
			}
		}
		g.once.Do(func() { g.killed <- (<-g.kill)() })
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gate) kubeconfig(t *testing.T) string {
	file := t.TempDir() + "/kubeconfig"
	err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: x, cluster: {server: "`+g.URL+`"}}],
contexts: [{name: x, context: {cluster: x, user: x}}], users: [{name: x, user: {}}], current-context: x}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// sizes are the values that spec.volumesize has had.
type sizes struct {
	mu   sync.Mutex
	seen []int32
}

func (s *sizes) note(r *otcv1.Rds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen); n == 0 || s.seen[n-1] != r.Spec.VolumeSize {
		s.seen = append(s.seen, r.Spec.VolumeSize)
	}
}

func TestKilledAroundThePatchThereIsOneChange(t *testing.T) {
	w := theWorld(t)
	for _, tc := range []struct {
		name    string
		applied bool
	}{{"between-intent-and-patch", false}, {"between-patch-and-outcome", true}} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := within(t)
			g := newGate(t, w, tc.applied)
			first, err := w.Serve(ctx, "--leader-elect=false", "--kubeconfig", g.kubeconfig(t))
			if err != nil {
				t.Fatal(err)
			}
			g.kill <- first.Kill
			db := add(t, w, world.Database{Name: tc.name, Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: otcsim.Workload{UsedGB: 10}, Autopilot: true})
			var history sizes
			go db.WatchRds(ctx, history.note)
			if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
				t.Fatal(err)
			}
			if err := db.SetWorkload(otcsim.Workload{UsedGB: 93}); err != nil {
				t.Fatal(err)
			}
			if code, err := first.Wait(ctx); err != nil || code != -1 {
				t.Fatalf("exit code %d, %v, want it killed", code, err)
			}
			if err := <-g.killed; err != nil {
				t.Fatal(err)
			}
			a, err := db.Autopilot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			rds, err := db.Rds(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if p := a.Status.Pending; p == nil || p.To != "110" || (rds.Spec.VolumeSize == 110) != tc.applied {
				t.Fatalf("killed with intent %+v and volumesize %d", p, rds.Spec.VolumeSize)
			}

			serve(t, w, "--leader-elect=false")
			a, err = db.WaitAutopilot(ctx, "the change is completed and the alarm is over", func(a *v1alpha1.RdsAutopilot) bool {
				return len(a.Status.Changes) > 0 && a.Status.Pending == nil && state(a, v1alpha1.MetricStorage) == v1alpha1.StateOK
			})
			if err != nil {
				t.Fatal(err)
			}
			if ch := a.Status.Changes; len(ch) != 1 || ch[0].From != "100" || ch[0].To != "110" || ch[0].By != v1alpha1.ByAutopilot || ch[0].Outcome != v1alpha1.OutcomeCompleted {
				t.Errorf("changes %+v, want one to 110", ch)
			}
			history.mu.Lock()
			defer history.mu.Unlock()
			if !slices.Equal(history.seen, []int32{100, 110}) {
				t.Errorf("spec.volumesize was %v, want 100 and then 110", history.seen)
			}
		})
	}
}
