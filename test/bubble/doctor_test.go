// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/internal/recording"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/sim/replay"
)

var update = flag.Bool("update", false, "write doctor's output into the documents anew")

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

// onlyListening has the assumptions that doctor can only check if it receives the messages itself.
var onlyListening = []string{
	"confirm-path", "payload-status", "sends-again", "sent-again-same", "smn-headers", "strings-only", "timestamp-form",
}

func TestDoctorNamesTheWrongAssumption(t *testing.T) {
	for _, a := range append(doctor.Assumptions(), doctor.Assumption{ID: "none"}) {
		t.Run(a.ID, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				var settings simcloud.Settings
				if differ := simcloud.Differences()[a.ID]; differ != nil {
					differ(&settings)
				}
				f := newFleet(t, settings)
				f.start(flags{sweep: 2 * time.Minute, maxAge: time.Hour})
				f.database("default", "db", simcloud.Instance{
					Flavor: "rds.mysql.n1.large.4.ha", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40, CPUDemand: 0.6},
				})
				time.Sleep(75 * time.Minute) // until there is data, however late
				before := f.requested("db")
				results := f.runDoctor(t.Context(), "db", f.withListen)
				var want []string
				if a.ID != "none" && !slices.Contains(unseen, a.ID) {
					want = append(slices.Clone(implied[a.ID]), a.ID)
					slices.Sort(want)
				}
				if got := checksIn(results, doctor.Failed, doctor.Differs); !slices.Equal(got, want) {
					t.Errorf("%v do not hold, want %v", got, want)
					for _, id := range slices.Compact(slices.Sorted(slices.Values(append(got, want...)))) {
						t.Logf("%+v", results[id])
					}
				}
				if r := results[a.ID]; len(want) > 0 && (r.State == doctor.Differs) != a.Harmless() {
					t.Errorf("%+v, and if it is wrong: %s", r, a.IfWrong)
				}
				if a.ID == "none" { // the API server of a bubble has neither schemas nor rights
					notSeen := slices.Sorted(slices.Values(append(slices.Clone(unseen), "crds", "rbac")))
					if got := checksIn(results, doctor.Unseen); !slices.Equal(got, notSeen) {
						t.Errorf("unseen are %v", got)
					}
				}
				f.checkDoctorLeftNothing()
				if after := f.requested("db"); after != before {
					t.Errorf("the Rds requested %v and requests %v", before, after)
				}
			})
		})
	}
}

func TestDoctorThroughTheServiceSeesWhatTheServiceStores(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		results := f.runDoctor(t.Context(), "db", nil)
		if got := checksIn(results, doctor.Failed, doctor.Differs); len(got) > 0 {
			t.Errorf("%v do not hold: %+v", got, results[got[0]])
		}
		want := slices.Concat([]string{"crds", "instance-primary", "rbac"}, unseen, onlyListening)
		slices.Sort(want)
		if got := checksIn(results, doctor.Unseen); !slices.Equal(got, want) {
			t.Errorf("unseen are %v, want %v", got, want)
		}
		for _, id := range onlyListening {
			if !strings.Contains(results[id].Text, "--listen") {
				t.Errorf("%+v", results[id])
			}
		}
		f.checkDoctorLeftNothing()
	})
}

// The service does not store a message that it refuses, so doctor knows only that none was accepted.
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
				f := newArmedFleet(t)
				f.sim.Configure(simcloud.Differences()[tc.differs])
				results := f.runDoctor(t.Context(), "db", nil)
				if r := results[tc.check]; r.State != doctor.Failed || r.Do == "" {
					t.Errorf("%+v", r)
				}
				if r := results[tc.differs]; r.State != tc.state {
					t.Errorf("%+v, want %s", r, tc.state)
				}
				f.checkDoctorLeftNothing()
			})
		})
	}
}

// outputOfARealAPIServer is what the API server of a bubble does not have. TestDoctorThroughTheRunningService shows it.
var outputOfARealAPIServer = map[string]string{
	"crds":  "Rds otc.mcsps.de/v1alpha1, RdsAutopilot autopilot.otc.mcsps.de/v1alpha1: all fields of this version exist",
	"rbac":  "The user of this run has all rights that serve needs",
	"lease": "rds-autopilot-5d8f7c9b6-x2x7k leads",
}

// variable matches what differs from run to run: IDs, times, and durations.
var variable = regexp.MustCompile(`[0-9a-f]{8,}\w*|al[0-9A-Za-z]{22}|\d{4}-\d\d-\d\dT[\d:]+Z|\b(?:\d+m)?\d+s\b`)

// The documents show doctor's output word for word, except for the parts that differ in each run. -update rewrites
// them.
func TestDocumentsShowDoctorsOutput(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		for _, doc := range []struct{ page, database string }{
			{"../../docs/doctor.md", "db"}, {"../../docs/first-day.md", ""},
		} {
			var output strings.Builder
			f.runDoctor(t.Context(), doc.database, func(o *doctor.Options) {
				report := o.Report
				o.Report = func(r doctor.Result) {
					report(r)
					if text, ok := outputOfARealAPIServer[r.Check]; ok {
						r = doctor.Result{Check: r.Check, State: doctor.OK, Text: text}
					}
					isListed := slices.ContainsFunc(doctor.Checks(), func(c doctor.Check) bool { return c.ID == r.Check })
					if doc.database != "" || isListed {
						output.WriteString(r.String())
					}
				}
			})
			page, err := os.ReadFile(doc.page)
			f.must(err)
			before, shown, _ := strings.Cut(string(page), "```text\n")
			shown, after, _ := strings.Cut(shown, "```\n")
			switch {
			case variable.ReplaceAllString(output.String(), "…") == variable.ReplaceAllString(shown, "…"):
			case *update:
				f.must(os.WriteFile(doc.page, []byte(before+"```text\n"+output.String()+"```\n"+after), 0o644))
			default:
				t.Errorf("%s shows\n%s\nand doctor prints\n%s", doc.page, shown, output.String())
			}
		}
	})
}

// The recording of a run beside a running service contains nothing of the tenant, and can be replayed. The cloud
// dates its points off the full minute, which changes no result.
func TestDoctorsRecordingReplaysWithoutADifference(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newArmedFleet(t)
		f.sim.Configure(func(s *simcloud.Settings) { s.PointsOffMinute = true })
		var file bytes.Buffer
		results := f.runDoctor(t.Context(), "db", func(o *doctor.Options) {
			withApplyCloud(o)
			o.Record = recording.New(&file, time.Now).Wrap
		})
		if got := checksIn(results, doctor.Failed, doctor.Differs); len(got) > 0 {
			t.Errorf("%v do not hold", got)
		}
		secrets := []string{f.sim.ProjectID(), f.public, "autopilot_", "autopilot-doctor", "simulated", "MII", "192.168."}
		for _, kv := range f.sim.Env() {
			if key, value, _ := strings.Cut(kv, "="); key != "OS_REGION_NAME" && key != "OS_AUTH_URL" {
				secrets = append(secrets, value)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(file.String(), secret) {
				t.Errorf("%q is in the recording", secret)
			}
		}
		lines, err := replay.Read(&file)
		f.must(err)
		if len(lines) < 20 {
			t.Errorf("only %d exchanges", len(lines))
		}
		differences, err := replay.Run(t.Context(), lines, replay.Options{Settings: simcloud.Settings{PointsOffMinute: true}})
		f.must(err)
		for _, d := range differences {
			t.Error(d)
		}
	})
}
