// SPDX-License-Identifier: Apache-2.0

package ownwrites

import (
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot"
)

func TestOwnWritesStandInForACacheThatIsBehind(t *testing.T) {
	of := func(version string, gb int) *autopilot.Target {
		return &autopilot.Target{ResourceVersion: version, UID: "uid", Wanted: autopilot.Wanted{VolumeGB: gb}}
	}
	var w Map[string, *autopilot.Target]
	const k = "ns/db"
	w.Keep(k, of("100", 110))
	w.Keep(k, of("98", 90)) // an answer that comes late
	if got := w.Newest(k, of("99", 100)); got.Wanted.VolumeGB != 110 {
		t.Errorf("the cache of before counts: %+v", got)
	}
	if got := w.Newest(k, of("101", 100)); got.Wanted.VolumeGB != 100 {
		t.Errorf("somebody's newer write does not count: %+v", got)
	}
	if w.Newest(k, of("100", 110)); !w.Arrived(k, of("100", 110)) {
		t.Error("a look at the cache, before its handler is called, has forgotten that the write is our own")
	}
	if len(w.last) > 0 {
		t.Error("what has arrived is kept")
	}
	w.Keep(k, of("100", 110))
	another := of("99", 50)
	another.UID = "another"
	if got := w.Newest(k, another); got.Wanted.VolumeGB != 50 {
		t.Errorf("the write to an object of before counts for another one of its name: %+v", got)
	}
}
