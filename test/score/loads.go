// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
)

//go:embed testdata/*.csv
var measurements embed.FS

// series is a demand in GB, one value a minute.
type series struct {
	size   int // of the volume in GB at the beginning
	demand []float64
}

// load is one column of a table.
type load struct {
	name   string
	series []series
	scores []score // by rule, the sum over the series
}

// group is one table.
type group struct {
	name, about string
	loads       []load
}

func loads() ([]group, error) {
	disks, err := realDisks()
	if err != nil {
		return nil, err
	}
	// fill returns the disks as volumes of 100 GB whose highest value is that one, with a fill of five hours on top.
	fill := func(name string, highest, rate float64) load {
		l := load{name: name}
		for _, d := range disks {
			s := series{100, make([]float64, len(d.demand))}
			for minute, gb := range d.demand {
				s.demand[minute] = max(1, highest+gb) + rate*min(5, max(0, float64(minute-480)/hour))
			}
			l.series = append(l.series, s)
		}
		return l
	}
	fills := group{name: "A fill of five hours", about: "40 real disks as volumes of 100 GB, of which each has 75 GB at most, and a fill on top. Each number is the sum of all disks."}
	for _, rate := range []float64{5, 10, 15, 20, 30, 60} {
		fills.loads = append(fills.loads, fill(fmt.Sprintf("%.0f GB/h", rate), 75, rate))
	}
	own := group{name: "No fill", about: "The same 40 disks with nothing on top, and a volume of 100 GB with 70 GB used and 22 GB more every six hours for three days.", loads: []load{fill("40 disks, at most 84 % used", 84, 0), fill("40 disks, at most 88 % used", 88, 0)}}
	for _, minutes := range []int{2, 10, 30} {
		own.loads = append(own.loads, load{name: fmt.Sprintf("spikes of %d minutes", minutes), series: []series{{100, spikes(70, 22, minutes)}}})
	}
	imports := group{name: "An import", about: "A volume that is 75 % full gets half of its size at an even rate. The measures include the day after it."}
	for _, i := range []struct{ sizeGB, hours int }{{40, 1}, {100, 2}, {500, 8}, {2000, 12}} {
		demand := make([]float64, (i.hours+24)*hour)
		for minute := range demand {
			demand[minute] = float64(i.sizeGB) * (0.75 + 0.5*min(1, max(0, float64(minute-4*hour)/float64(i.hours*hour))))
		}
		imports.loads = append(imports.loads, load{name: fmt.Sprintf("%d GB in %d h", i.sizeGB/2, i.hours), series: []series{{i.sizeGB, demand}}})
	}
	slow := group{name: "1 % a day for 90 days", about: "A volume that is 80 % full at the beginning."}
	for _, sizeGB := range []int{40, 100, 500, 1000, 2000} {
		demand := make([]float64, 90*day)
		for minute := range demand {
			demand[minute] = 0.8 * float64(sizeGB) * math.Pow(1.01, float64(minute)/day)
		}
		slow.loads = append(slow.loads, load{name: fmt.Sprintf("from %d GB", sizeGB), series: []series{{sizeGB, demand}}})
	}
	return []group{fills, imports, slow, own}, nil
}

// spikes returns three days with a spike every six hours.
func spikes(base, more float64, minutes int) []float64 {
	demand := make([]float64, 3*day)
	for minute := range demand {
		demand[minute] = base
		if into := minute%(6*hour) - 3*hour; into >= 0 && into < minutes {
			demand[minute] += more
		}
	}
	return demand
}

// realDisks returns the used space of each disk of the extract, one value a minute, as the difference to its highest
// value in percent.
func realDisks() ([]series, error) {
	rows, err := table("disks.csv")
	if err != nil {
		return nil, err
	}
	var disks []series
	times := rows[0][1:]
	for _, row := range rows[1:] {
		values, highest := row[1:], 0.0
		for _, value := range values {
			highest = max(highest, value)
		}
		var s series
		for i := range len(times) - 1 {
			for at := times[i]; at < times[i+1]; at += 60 {
				part := (at - times[i]) / (times[i+1] - times[i])
				s.demand = append(s.demand, values[i]+part*(values[i+1]-values[i])-highest)
			}
		}
		disks = append(disks, s)
	}
	return disks, nil
}

// table returns the numbers of a file; 0 for a cell that holds a name.
func table(file string) ([][]float64, error) {
	f, err := measurements.Open("testdata/" + file)
	if err != nil {
		return nil, fmt.Errorf("open the measurements: %w", err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the measurements in %s: %w", file, err)
	}
	rows := make([][]float64, len(records))
	for i, record := range records {
		rows[i] = make([]float64, len(record))
		for n, cell := range record {
			value, err := strconv.ParseFloat(cell, 64)
			if isName := i == 0 || n == 0; err != nil && !isName {
				return nil, fmt.Errorf("line %d of %s: %w", i+1, file, err)
			}
			rows[i][n] = value
		}
	}
	return rows, nil
}
