// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/internal/recording"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/sim/replay"
)

// The recording of a whole run of doctor beside a running service must contain nothing of the tenant, and must replay.
func TestDoctorsRecordingReplaysWithoutADifference(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f, ended := patient(t)
		defer ended()
		f.sim.Configure(func(s *simcloud.Settings) { s.PointsOffMinute = true })
		var file bytes.Buffer
		found := f.examine(t.Context(), "db", func(o *doctor.Options) {
			withApplyCloud(o)
			o.Record = recording.New(&file, time.Now).Wrap
		})
		if got := in(found, doctor.Failed, doctor.Differs); len(got) > 0 {
			t.Errorf("what does not hold is %v, with points that are on no full minute", got)
		}
		secrets := []string{f.sim.ProjectID(), f.public, "autopilot_", "autopilot-doctor", "simulated", "MII", "192.168."}
		for _, kv := range f.sim.Env() {
			if key, value, _ := strings.Cut(kv, "="); key != "OS_REGION_NAME" && key != "OS_AUTH_URL" {
				secrets = append(secrets, value)
			}
		}
		for _, in := range f.sim.Topics() {
			secrets = append(secrets, in.Name)
		}
		for _, secret := range secrets {
			if strings.Contains(file.String(), secret) {
				t.Errorf("%q is in the recording", secret)
			}
		}
		lines, err := replay.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) < 20 {
			t.Errorf("only %d exchanges", len(lines))
		}
		differences, err := replay.Run(t.Context(), lines, replay.Options{Settings: simcloud.Settings{PointsOffMinute: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range differences {
			t.Error(d)
		}
	})
}

// A fresh rule may start in alarm, because Cloud Eye evaluates it at once on older points. The used space speaks against a
// growth, so nothing happens.
func TestFreshRuleInAlarmGrowsNothing(t *testing.T) {
	for _, state := range []simcloud.RuleState{simcloud.StateAlarm, simcloud.StateInsufficientData} {
		t.Run(string(state), func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f := newFleet(t, simcloud.Settings{NewRule: state, Odd: simcloud.Odd{RawRulesSleep: true}}) // so that it stays
				f.runCloud()
				s := f.start(flags{sweep: 2 * time.Minute})
				defer s.stop()
				f.database("default", "db", simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40}})
				before := f.rdsSpec("db")
				time.Sleep(2 * time.Hour)
				if len(f.sim.Rules()) < 3 {
					t.Fatalf("only %d rules", len(f.sim.Rules()))
				}
				if after := f.rdsSpec("db"); after["volumesize"] != before["volumesize"] || after["flavorref"] != before["flavorref"] {
					t.Errorf("the Rds was %v and is %v", before, after)
				}
			})
		})
	}
}
