// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// empty is a cache that has no Rds.
type empty struct{ Cache }

func (empty) Target(string, string) *autopilot.Target      { return nil }
func (empty) TargetsByInstance(string) []*autopilot.Target { return nil }

// leader is a controller that leads and does not work. rounds empties its queue, and says how many databases there were.
func leader(cache Cache) (c *Controller, rounds func() int) {
	c = New(Options{Cache: cache, Reg: prometheus.NewRegistry(), Log: zap.NewNop(), Now: metav1.Now().Local})
	c.queues = newQueues(c.decideMarks)
	return c, func() (n int) {
		for ; c.queues.decide.Len() > 0; n++ {
			key, _ := c.queues.decide.Get()
			c.queues.decide.Done(key)
		}
		return n
	}
}

// The watch may be seconds behind when a storm makes the API server busy.
func TestWhatThisProcessStoresOfAMessageStartsOneRoundAtOnce(t *testing.T) {
	of := func(version, message string) *v1alpha1.RdsAutopilot {
		a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: database.Namespace, Name: database.Name, UID: "1", ResourceVersion: version}}
		a.Status.Intake.Signals = []v1alpha1.Signal{{MessageID: message}}
		return a
	}
	c, rounds := leader(empty{})
	c.IntakeStored(of("11", "b"))
	if n := rounds(); n != 1 {
		t.Errorf("%d rounds before the watch tells of it, want one", n)
	}
	c.AutopilotChanged(of("10", "a"), of("11", "b"))
	if n := rounds(); n != 0 {
		t.Errorf("%d more rounds when the watch tells of it", n)
	}
	c.AutopilotChanged(of("11", "b"), of("13", "d")) // another replica's
	if n := rounds(); n != 1 {
		t.Errorf("%d rounds by the watch, want one", n)
	}
}

// rdsThatWants is the Rds at a version, with what it asks the operator for.
func rdsThatWants(version string, gb int) *autopilot.Target {
	return &autopilot.Target{
		Namespace: database.Namespace, Name: database.Name, UID: "1", ResourceVersion: version, InstanceID: "in01", Wanted: autopilot.Wanted{VolumeGB: gb},
	}
}

func TestNothingButOurOwnPatchStartsNoRound(t *testing.T) {
	for _, tt := range []struct {
		name     string
		old, now *autopilot.Target
		want     int
	}{
		{"our own", rdsThatWants("10", 100), rdsThatWants("11", 110), 0},
		{"before our own", rdsThatWants("9", 90), rdsThatWants("10", 100), 1},
		{"after our own", rdsThatWants("11", 110), rdsThatWants("12", 100), 1},
		{"our own, with what somebody else wrote before", &autopilot.Target{ResourceVersion: "9", Wanted: autopilot.Wanted{VolumeGB: 100}}, rdsThatWants("11", 110), 1},
		{"our own, of an Rds that is seen for the first time", nil, rdsThatWants("11", 110), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, rounds := leader(empty{})
			c.applied.Keep(database, rdsThatWants("11", 110))
			c.TargetChanged(tt.old, tt.now)
			if n := rounds(); n != tt.want {
				t.Errorf("%d rounds, want %d", n, tt.want)
			}
		})
	}
}

// slowAnswer is an API server whose watch tells of a change before a patch is answered.
type slowAnswer struct {
	empty
	read   *autopilot.Target
	watch  func()
	stored *autopilot.Target
}

func (s slowAnswer) Target(string, string) *autopilot.Target { return s.read }

func (s slowAnswer) Apply(context.Context, *autopilot.Target, v1alpha1.Intent) (*autopilot.Target, error) {
	s.watch()
	if s.stored == nil {
		return nil, &autopilot.RefusedError{}
	}
	return s.stored, nil
}

func TestAWatchThatIsFasterThanTheAnswerStartsNoRound(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stored *autopilot.Target // by our patch
		want   int
	}{
		{"our own", rdsThatWants("11", 110), 0},
		{"somebody else's, and ours came later", rdsThatWants("12", 120), 1},
		{"somebody else's, and ours was refused", nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c *Controller
			var rounds func() int
			api := slowAnswer{read: rdsThatWants("10", 100), stored: tt.stored, watch: func() {
				c.TargetChanged(rdsThatWants("10", 100), rdsThatWants("11", 110))
				if n := rounds(); n != 0 {
					t.Errorf("%d rounds before the answer", n)
				}
			}}
			c, rounds = leader(api)
			c.Applier = api
			r := &round{Controller: c, key: database, target: api.read, rap: &v1alpha1.RdsAutopilot{}}
			if _, err := r.apply(t.Context(), v1alpha1.Intent{Kind: v1alpha1.KindVolume, To: "110"}); err != nil {
				t.Fatal(err)
			}
			if n := rounds(); n != tt.want {
				t.Errorf("%d rounds after the answer, want %d", n, tt.want)
			}
			c.TargetChanged(rdsThatWants("13", 130), rdsThatWants("14", 140))
			if n := rounds(); n != 1 {
				t.Errorf("%d rounds by a later change, want one", n)
			}
		})
	}
}
