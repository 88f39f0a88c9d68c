// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/recording"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/sim/replay"
)

// TestRecordedCloudsAgreeWithTheSimulation replays each recording of a real cloud.
func TestRecordedCloudsAgreeWithTheSimulation(t *testing.T) {
	files, err := filepath.Glob("../../../conformance/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("there is no recording in conformance/ yet")
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			lines, err := replay.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range replayed(t, lines, replay.Options{}) {
				t.Error(d)
			}
		})
	}
}

func replayed(t *testing.T, lines []recording.Exchange, opts replay.Options) []replay.Difference {
	t.Helper()
	found, err := replay.Run(t.Context(), lines, opts)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// record makes a recording of the simulation: some calls of doctor, of a growth, and a refused one.
func record(t *testing.T) []recording.Exchange {
	t.Helper()
	c := newClient(t, nil)
	var file bytes.Buffer
	recorder := recording.New(&file, func() time.Time { return c.now })
	c.via = recorder.Wrap(c.sim, c.env("OS_PASSWORD"))
	p := c.populate()
	for _, path := range []string{
		rds + "/flavors/MySQL?version_name=8.0", rds + "/instances/{instance}/flavors-resize", ces + "/alarms/{alarm}", smnv + "/subscriptions",
	} {
		c.call(200, "GET", p.fill(path), "")
	}
	c.call(200, "POST", ces+"/batch-query-metric-data", p.fill(batchBody("rds048_disk_used_size")))
	c.sim.Confirm(p.fill("{subscription}"))
	c.call(200, "GET", smnv+"/subscriptions", "")
	job := c.act(202, p.instance, enlarge(120))["job_id"].(string)
	for range 3 {
		c.call(200, "GET", rds+"/jobs?id="+job, "")
		c.pass(2 * time.Minute)
	}
	c.act(400, p.instance, enlarge(120)) // the size that it has
	if recorder.Err() != nil {
		t.Fatal(recorder.Err())
	}
	lines, err := replay.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// Each deliberate difference must fail a replay, and the message must name the field or the call.
func TestRecordedSimulationDiffersFromAChangedOne(t *testing.T) {
	lines := record(t)
	for _, d := range replayed(t, lines, replay.Options{}) {
		t.Error("unchanged:", d)
	}
	for name, tc := range map[string]struct {
		differ simcloud.Settings
		want   string
	}{
		"another status":             {simcloud.Settings{NoResizeList: true}, "flavors-resize: the status is 200 in the recording and 404"},
		"no data":                    {simcloud.Settings{Odd: simcloud.Odd{NoUsedSpace: true}}, "datapoints has 60 rows in the recording and none in the simulation"},
		"another state":              {simcloud.Settings{Odd: simcloud.Odd{RawRulesSleep: true}}, "are [alarm] in the recording and [ok] in the simulation"},
		"a job that fails":           {simcloud.Settings{JobsFail: true}, "are [Running Completed] in the recording and [Running Failed] in the simulation"},
		"another number for a state": {simcloud.Settings{Odd: simcloud.Odd{ConfirmedIsTwo: true}}, "are [0 1] in the recording and [0 2] in the simulation"},
	} {
		t.Run(name, func(t *testing.T) {
			var all strings.Builder
			for _, d := range replayed(t, lines, replay.Options{Settings: tc.differ}) {
				all.WriteString(d.String())
			}
			if !strings.Contains(all.String(), tc.want) {
				t.Errorf("no difference says %q:\n%s", tc.want, all.String())
			}
		})
	}
}

func TestRecordedBodyDiffersFromAChangedOne(t *testing.T) {
	for name, tc := range map[string]struct{ recorded, got, want string }{
		"the same":               {`{"a":[{"b":"x","size":1}]}`, `{"a":[{"b":"y","size":2}]}`, "[]"},
		"a key is missing":       {`{"a":{"b":1}}`, `{"a":{}}`, "[a.b is missing in the simulation]"},
		"a further key":          {`{}`, `{"count":1}`, "[count is not in the recording]"},
		"another type":           {`{"size":100}`, `{"size":"100"}`, "[size is a number in the recording and a string in the simulation]"},
		"another unit of a time": {`{"at":1720605661184}`, `{"at":1720605661}`, "[at is a time in ms in the recording and a time in s in the simulation]"},
		"another form of a time": {`{"at":"2026-03-01T10:00:00+0000"}`, `{"at":"2026-03-01T10:00:00Z"}`, "[at has the form time+0000 in the recording"},
		"another unit":           {`{"rows":[{"unit":"GB"}]}`, `{"rows":[{"unit":"MB"}]}`, `[rows[0].unit is "GB" in the recording and "MB" in the simulation]`},
		"another code":           {`{"code":"SMN.0004"}`, `{"code":"SMN.0007"}`, `[code is "SMN.0004" in the recording and "SMN.0007" in the simulation]`},
		"no rows":                {`{"rows":[1]}`, `{"rows":[]}`, "[rows has 1 rows in the recording and none in the simulation]"},
	} {
		if got := fmt.Sprint(replay.Compare([]byte(tc.recorded), []byte(tc.got))); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
