// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
)

func TestWithEveryMessageLostAnAlarmIsActedOn(t *testing.T) {
	h := newInstallation(t)
	h.mute()
	h.serve("--leader-elect=false")
	h.armed()
	h.alarm()
	h.grownOnce()
	a, err := h.Autopilot(h.within())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Status.Intake.Signals) > 0 {
		t.Errorf("signals %+v, although every message was to be lost", a.Status.Intake.Signals)
	}
}

func TestEveryMessageThreeTimesAndInAnyOrderIsAsGoodAsOnce(t *testing.T) {
	h := newInstallation(t)
	h.triple = rand.New(rand.NewPCG(1, 1))
	p := h.serve("--leader-elect=false")
	h.armed()
	h.alarm()
	h.grownOnce()
	h.mu.Lock()
	left := h.copies
	h.copies = nil
	h.mu.Unlock()
	for _, body := range left { // alarms after the ok that ended them
		if status := h.bring(h.within(), body); status != http.StatusOK {
			t.Errorf("a copy was answered %d", status)
		}
	}
	h.grownOnce()
	m, err := p.Metrics(h.within())
	if err != nil {
		t.Fatal(err)
	}
	again := m.Sum("rds_autopilot_notifications_total", "type=Notification", "result=duplicate") +
		m.Sum("rds_autopilot_notifications_total", "type=Notification", "result=stale")
	if again < 2 {
		t.Errorf("%g copies were known as such: too few to show anything", again)
	}
}
