// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"time"
)

// SeriesFault is what is wrong with the datapoints of a metric, where they are queried alone and in a batch. It changes
// them in every dimension that the metric has. Cloud Eye evaluates rules on the true values.
type SeriesFault struct {
	// Refused answers a query of the series with 400. A batch that contains it is refused as a whole.
	Refused bool

	// Value is printed in place of a value, such as 1e300, -5, null, or "NaN" with its quotes. If it is no JSON, such as
	// NaN without quotes, the whole reply is malformed, with all series of a batch. Such a Value must not contain quotes.
	Value string
	// AboveVolume replaces the used space, in GB or percent, by 1.1 times the volume's size. Other metrics keep their
	// values.
	AboveVolume bool
	// Future moves a timestamp ahead.
	Future time.Duration
	// All makes Value, AboveVolume and Future change all points. Without it they change the newest point that can be seen.
	// So another point is wrong each minute, and history keeps its true values.
	All bool

	Gaps     bool // every other point of the period is missing: those with an odd number since the epoch
	Doubles  bool // each point is there twice
	Disorder bool // the newest point is the first
}

// fault returns what is wrong with a metric of the instance, or else with all its metrics; false if nothing is.
func (in *instance) fault(metric string) (f SeriesFault, faulty bool) {
	if len(in.SeriesFaults) == 0 {
		return SeriesFault{}, false
	}
	if f, faulty = in.SeriesFaults[metric]; !faulty {
		f, faulty = in.SeriesFaults[""]
	}
	return f, faulty
}

// bareMark begins the text that stands for a value that is no JSON, because json.Marshal encodes no such value.
const bareMark = "bare value:"

var bareValue = regexp.MustCompile(`"` + bareMark + `([^"]*)"`)

// printBare prints the values that are no JSON.
func printBare(rep reply) reply {
	if bytes.Contains(rep.body, []byte(bareMark)) {
		rep.body = bareValue.ReplaceAll(rep.body, []byte("$1"))
	}
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
		return s.value(sample{usedGB: 1.1 * size, totalGB: size}), true
	}
	return nil, false
}

// spoil applies a fault to the rows of points of periods of n ticks; it may modify the rows.
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
