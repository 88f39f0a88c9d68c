// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// behind is a cache whose watch has told of no more than a.
func behind(t *testing.T, a *autopilotv1.RdsAutopilot) *Cache {
	t.Helper()
	c := &Cache{autopilots: informers[*packed]{cache.NewSharedIndexInformer(nil, &autopilotv1.RdsAutopilot{}, 0, cache.Indexers{})}}
	arrive(t, c, a)
	return c
}

// arrive is a watch event, with all that follows it.
func arrive(t *testing.T, c *Cache, a *autopilotv1.RdsAutopilot) {
	t.Helper()
	p, err := pack(a.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.autopilots[0].GetIndexer().Add(p); err != nil {
		t.Fatal(err)
	}
	c.forgetWritten(nil, p)
}

func version(a *autopilotv1.RdsAutopilot, version, reason string) *autopilotv1.RdsAutopilot {
	next := a.DeepCopy()
	next.ResourceVersion = version
	next.Status.Decisions[0].Reason = reason
	return next
}

func TestTheCacheIsNotBehindWhatWasWrittenHere(t *testing.T) {
	read := withHistory() // version 10
	c := behind(t, read)
	check := func(when string, want *autopilotv1.RdsAutopilot) {
		t.Helper()
		got, ok := c.Autopilot(read.Namespace, read.Name)
		if !ok {
			t.Fatalf("%s: there is none", when)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("before", read)
	written := version(read, "12", "Written")
	c.keep(written)
	check("once written", written)
	c.keep(version(read, "11", "Late"))
	check("once an earlier answer came late", written)
	arrive(t, c, version(read, "11", "Another"))
	check("once the watch told of an earlier version", written)

	intake := *written
	intake.ResourceVersion = "13"
	intake.Status.Intake = autopilotv1.Intake{SigningCertURL: "https://example.com/cert.pem"}
	stored := intake // as the receiver has it, which finds it by its topic
	stored.Status.Changes, stored.Status.FormerVolumes, stored.Status.Decisions = nil, nil, nil
	if c.keepIntake("11", &stored) {
		t.Error("an intake on top of a version that is not the last one is kept: its history is not known")
	}
	if !c.keepIntake("12", &stored) {
		t.Error("the cache is said to have the intake")
	}
	check("once a message was stored", &intake)

	newer := version(read, "14", "Newer")
	arrive(t, c, newer)
	check("once the watch told of a newer version", newer)
	c.keep(version(read, "14", "Slow"))
	check("once the answer came after the watch", newer)
	if c.keepIntake("14", newer) {
		t.Error("the watch was faster, and the cache is said to be behind")
	}

	c.keep(version(read, "15", "Last"))
	c.forgetWritten(&packed{RdsAutopilot: *newer}, nil)
	check("once it was deleted and its successor has the version of before", newer)
	if err := c.autopilots[0].GetIndexer().Delete(&packed{RdsAutopilot: *newer}); err != nil {
		t.Fatal(err)
	}
	c.keep(version(read, "16", "Gone"))
	if _, ok := c.Autopilot(read.Namespace, read.Name); ok {
		t.Error("what is deleted is still there")
	}
}
