// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"context"
	"flag"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

var update = flag.Bool("update", false, "write doctor's answer in the documents anew")

// examine runs doctor in the cluster of a fleet, as a person would.
func (f *fleet) examine(ctx context.Context, name string, change func(*doctor.Options)) map[string]doctor.Result {
	f.t.Helper()
	public, err := url.Parse(f.public + "/smn")
	f.must(err)
	with := app.Defaults()
	with.PublicURL, with.Env, with.Transport, with.CloudRate, with.Version, with.Log = public, f.env(), f.sim, 1000, "test", zap.NewNop()
	with.SMNClient, with.LeaseNamespace, with.CertHosts = smnClient(f.sim), "default", []string{f.sim.CertHost()}
	found := map[string]doctor.Result{}
	o := doctor.Options{
		Options: with, Kube: f.kube.Config(), Namespace: "default", Name: name, Wait: 20 * time.Minute,
		Report: func(r doctor.Result) {
			if last, twice := found[r.Check]; !twice || last.State != doctor.Failed {
				found[r.Check] = r
			}
		},
		LookUp: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("80.158.1.1")}, nil
		},
		Web: &http.Client{Transport: f.routes},
	}
	if change != nil {
		change(&o)
	}
	doctor.Run(ctx, o)
	return found
}

// doctorHost is the host of the public URL that leads to doctor --listen.
const doctorHost = "doctor.example.com"

// listening makes doctor receive the messages itself.
func (f *fleet) listening(o *doctor.Options) {
	l := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{DialContext: l.dial, DisableKeepAlives: true}
	f.routes.mu.Lock()
	defer f.routes.mu.Unlock()
	o.Listen, f.routes.doctor = l, transport
	o.PublicURL = &url.URL{Scheme: "http", Host: doctorHost, Path: "/smn"}
}

// pipes is a listener without a network.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accept <- theirs:
		return ours, nil
	case <-p.closed:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

// in returns the checks that ended so, in the order of their names.
func in(found map[string]doctor.Result, states ...doctor.State) (checks []string) {
	for id, r := range found {
		if slices.Contains(states, r.State) {
			checks = append(checks, id)
		}
	}
	slices.Sort(checks)
	return checks
}

// clean fails if anything of doctor is left in the cloud or in the cluster.
func (f *fleet) clean(t *testing.T) {
	t.Helper()
	for _, x := range f.sim.Topics() {
		if strings.HasPrefix(x.Name, "autopilot-doctor") {
			t.Errorf("topic %s is left", x.Name)
		}
	}
	for _, x := range f.sim.Rules() {
		if strings.HasPrefix(x.Name, "autopilot-doctor") {
			t.Errorf("rule %s is left", x.Name)
		}
	}
	for _, a := range f.autopilots() {
		if strings.HasPrefix(a.Name, "autopilot-doctor") {
			t.Errorf("RdsAutopilot %s is left", a.Name)
		}
	}
}

// implied has the further checks that fail if an assumption does not hold.
var implied = map[string][]string{
	"cert-host":           {"subscription"},
	"cert-pem":            {"subscription"},
	"signed-text":         {"subscription"},
	"signature-algorithm": {"subscription"},
	"confirm-host":        {"subscription"},
	"confirm-answer":      {"subscription"},
	"timestamp-utc":       {"subscription"},
	"subscription-status": {"subscription"},
	"cloud-eye-publishes": {"alarm"},
	"payload-schema":      {"alarm"},
	"payload-time":        {"alarm"},
	"payload-rule":        {"alarm"},
	"payload-dimension":   {"alarm"},
	"rule-raw":            {"alarm"},
	"metric-percent":      {"payload-percent"},
}

// unseen has the assumptions that doctor can only check with a full database or a hundred rules.
var unseen = []string{"enlarge-when-full", "rule-pages", "storage-full-listed"}

func TestDoctorNamesTheWrongAssumption(t *testing.T) {
	for _, a := range append(doctor.Assumptions(), doctor.Assumption{ID: "none"}) {
		t.Run(a.ID, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				var settings simcloud.Settings
				if differ := simcloud.Differences()[a.ID]; differ != nil {
					differ(&settings)
				}
				f := newFleet(t, settings)
				f.runCloud()
				s := f.start(flags{sweep: 2 * time.Minute, maxAge: time.Hour})
				defer s.stop()
				f.database("default", "db", simcloud.Instance{Flavor: "rds.mysql.n1.large.4.ha", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40, CPUDemand: 0.6}})
				time.Sleep(75 * time.Minute) // until there is data, however late
				before := f.rdsSpec("db")
				found := f.examine(t.Context(), "db", f.listening)
				var want []string
				if a.ID != "none" && !slices.Contains(unseen, a.ID) {
					want = append(slices.Clone(implied[a.ID]), a.ID)
					slices.Sort(want)
				}
				if got := in(found, doctor.Failed, doctor.Differs); !slices.Equal(got, want) {
					t.Errorf("what does not hold is %v, want %v", got, want)
					for _, id := range slices.Compact(slices.Sorted(slices.Values(append(got, want...)))) {
						t.Logf("%+v", found[id])
					}
				}
				if r := found[a.ID]; len(want) > 0 && (r.State == doctor.Differs) != a.Harmless() {
					t.Errorf("%+v, and if it is wrong: %s", r, a.IfWrong)
				}
				if a.ID == "none" {
					if got := in(found, doctor.Unseen); !slices.Equal(got, []string{"crds", "enlarge-when-full", "rbac", "rule-pages", "storage-full-listed"}) {
						t.Errorf("unseen are %v", got) // the API server of a bubble has neither schema nor rights
					}
				}
				f.clean(t)
				if after := f.rdsSpec("db"); after["volumesize"] != before["volumesize"] || after["flavorref"] != before["flavorref"] {
					t.Errorf("the Rds was %v and is %v", before, after)
				}
			})
		})
	}
}

// onlyListening has the assumptions that doctor can only check if it receives the messages itself.
var onlyListening = []string{
	"confirm-path", "payload-status", "sends-again", "sent-again-same", "smn-headers", "strings-only", "timestamp-form",
}

func TestDoctorThroughTheServiceSeesWhatTheServiceStores(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		found := f.examine(t.Context(), "db", nil)
		if got := in(found, doctor.Failed, doctor.Differs); len(got) > 0 {
			t.Errorf("what does not hold is %v: %+v", got, found[got[0]])
		}
		want := slices.Concat([]string{"crds", "instance-primary", "rbac"}, unseen, onlyListening)
		slices.Sort(want)
		if got := in(found, doctor.Unseen); !slices.Equal(got, want) {
			t.Errorf("unseen are %v, want %v", got, want)
		}
		for _, id := range onlyListening {
			if !strings.Contains(found[id].Text, "--listen") {
				t.Errorf("%+v", found[id])
			}
		}
		f.clean(t)
	})
}

// A message that the service refuses is not stored, so doctor knows only that none was accepted.
func TestDoctorThroughTheServiceFailsIfTheServiceAcceptsNoMessage(t *testing.T) {
	for _, tc := range []struct {
		differs, check string
		state          doctor.State // of the assumption
	}{
		{"signature-algorithm", "subscription", doctor.Unseen},
		{"confirm-answer", "subscription", doctor.Failed},
		{"payload-time", "alarm", doctor.Unseen},
	} {
		t.Run(tc.differs, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f, ended := patient(t)
				defer ended()
				f.sim.Configure(simcloud.Differences()[tc.differs])
				found := f.examine(t.Context(), "db", nil)
				if r := found[tc.check]; r.State != doctor.Failed || r.Do == "" {
					t.Errorf("%+v", r)
				}
				if r := found[tc.differs]; r.State != tc.state {
					t.Errorf("%+v, want %s", r, tc.state)
				}
				f.clean(t)
			})
		})
	}
}

// The documents show doctor's output word for word, except for parts that differ in each run, such as IDs. -update rewrites them.
func TestDocumentsShowDoctorsOutput(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		for _, doc := range []struct{ page, database string }{{"../../docs/doctor.md", "db"}, {"../../docs/first-day.md", ""}} {
			var said strings.Builder
			f.examine(t.Context(), doc.database, func(o *doctor.Options) {
				report := o.Report
				o.Report = func(r doctor.Result) {
					report(r)
					if text, elsewhere := fromARealAPIServer[r.Check]; elsewhere {
						r = doctor.Result{Check: r.Check, State: doctor.OK, Text: text}
					}
					if doc.database != "" || slices.ContainsFunc(doctor.Checks(), func(c doctor.Check) bool { return c.ID == r.Check }) {
						said.WriteString(r.String())
					}
				}
			})
			page, err := os.ReadFile(doc.page)
			if err != nil {
				t.Fatal(err)
			}
			before, shown, _ := strings.Cut(string(page), "```text\n")
			shown, after, _ := strings.Cut(shown, "```\n")
			if variable.ReplaceAllString(said.String(), "…") == variable.ReplaceAllString(shown, "…") {
				continue
			}
			if !*update {
				t.Errorf("%s shows\n%s\nand doctor says\n%s", doc.page, shown, said.String())
			} else if err := os.WriteFile(doc.page, []byte(before+"```text\n"+said.String()+"```\n"+after), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// fromARealAPIServer is what the one of a bubble does not have; TestDoctorThroughTheRunningService shows it.
var fromARealAPIServer = map[string]string{
	"crds":  "Rds otc.mcsps.de/v1alpha1, RdsAutopilot autopilot.otc.mcsps.de/v1alpha1: all fields of this version exist",
	"rbac":  "The user of this run has all rights that serve needs",
	"lease": "rds-autopilot-5d8f7c9b6-x2x7k leads",
}

// variable is what differs from run to run.
var variable = regexp.MustCompile(`[0-9a-f]{8,}\w*|al[0-9A-Za-z]{22}|\d{4}-\d\d-\d\dT[\d:]+Z|\b(?:\d+m)?\d+s\b`)
