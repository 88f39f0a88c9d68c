// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"
)

// SeriesFault is a fault of the datapoints of a metric, in every dimension that the metric has. Cloud Eye evaluates
// rules on the true values.
type SeriesFault struct {
	// Refused answers a query of the series with 400. A batch that contains it is refused as a whole.
	Refused bool

	// Value replaces a value, with 1e300, -5, null, or "NaN" with its quotes. If it is no JSON, such as NaN without
	// quotes, the whole reply of a batch is malformed. Such a Value must not contain quotes.
	Value string
	// AboveVolume replaces the used space, in GB or percent, by 1.2 times the volume's size. Other metrics keep their
	// values.
	AboveVolume bool
	// Future is added to a timestamp.
	Future time.Duration
	// All makes Value, AboveVolume and Future change all points. Without it they change the newest visible point, so
	// another point is wrong each minute and older points keep their true values.
	All bool

	Gaps     bool // every other point is missing: those with an odd number since the epoch
	Doubles  bool // each point is listed twice
	Disorder bool // the newest point is listed first
}

// fault returns the fault of a metric of the instance, or else that of all its metrics.
func (in *instance) fault(metric string) (f SeriesFault, faulty bool) {
	if f, faulty = in.SeriesFaults[metric]; !faulty {
		f, faulty = in.SeriesFaults[""]
	}
	return f, faulty
}

// bareMark begins a text that stands for a value that is no JSON, because json.Marshal cannot encode such a value.
const bareMark = "bare value:"

var bareValue = regexp.MustCompile(`"` + bareMark + `([^"]*)"`)

// printBare replaces the texts that stand for values that are no JSON.
func printBare(rep reply) reply {
	rep.body = bareValue.ReplaceAll(rep.body, []byte("$1"))
	return rep
}

func (f SeriesFault) value(s *series) (v any, replaces bool) {
	switch {
	case f.Value != "" && json.Valid([]byte(f.Value)):
		return json.RawMessage(f.Value), true
	case f.Value != "":
		return bareMark + f.Value, true
	case f.AboveVolume && (s.name == "rds039_disk_util" || s.name == "rds048_disk_used_size"):
		size := float64(s.in.VolumeGB)
		return s.value(sample{usedGB: 1.2 * size, totalGB: size}), true
	}
	return nil, false
}

// spoil applies a fault to the rows of points, whose periods have n ticks. It may modify the rows.
func (c *Cloud) spoil(s *series, f SeriesFault, points []point, rows []fields, n int64) []fields {
	chosen := c.visible(c.sampled)/n*n - n
	value, replaces := f.value(s)
	spoiled := []fields{}
	for i, p := range points {
		if f.Gaps && p.tick/n%2 == 1 {
			continue
		}
		row := rows[i]
		if f.All || p.tick == chosen {
			if replaces {
				row[average] = value
			}
			row["timestamp"] = row["timestamp"].(int64) + c.span(f.Future).Milliseconds()
		}
		spoiled = append(spoiled, row)
		if f.Doubles {
			spoiled = append(spoiled, row)
		}
	}
	if f.Disorder {
		slices.Reverse(spoiled)
	}
	return spoiled
}
