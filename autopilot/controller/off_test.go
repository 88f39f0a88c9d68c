// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Nobody checks an alarm any more once autopilot is off. Its last decision says so, once.
func TestAlarmInForceGetsALastDecisionWhenAutopilotIsTurnedOff(t *testing.T) {
	for name, tc := range map[string]struct {
		off    func(*world, *Controller)
		reason autopilot.Reason
	}{
		"autopilot false": {func(w *world, _ *Controller) {
			w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = new(false) })
		}, autopilot.ReasonNotEnabled},
		"mode Off": {func(w *world, _ *Controller) {
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Mode = v1alpha1.ModeOff })
		}, autopilot.ReasonNotEnabled},
		"--mode=Off": {func(_ *world, c *Controller) { c.options.Mode = v1alpha1.ModeOff }, autopilot.ReasonNotEnabled},
		"the administrator forbids the instance": {func(w *world, c *Controller) {
			c.options.Allowed.Instances = nil
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Apply = v1alpha1.ApplyCloud })
		}, autopilot.ReasonNotAllowed},
	} {
		for _, inForce := range []bool{true, false} {
			title := name + ", no alarm"
			if inForce {
				title = name
			}
			inBubble(t, title, func(t *testing.T) {
				w := newWorld(t)
				c := w.process()
				w.settle(t, c)
				w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.MaxGB = 100 })
				if inForce {
					w.usedGB = 92
					w.alarm(v1alpha1.MetricStorage, true)
				}
				w.mustDecide(t, c)
				tc.off(w, c)
				w.settle(t, c)
				want := 0
				if inForce {
					want = 1
				}
				var last v1alpha1.DecisionRecord
				n := 0
				for _, d := range w.rap().Status.Decisions {
					if d.Reason == string(tc.reason) {
						n, last = n+1, d
					}
				}
				if n != want || inForce && (w.rap().Status.Decisions[0].Reason != last.Reason || last.Metric != v1alpha1.MetricStorage || last.Count != 1) {
					t.Errorf("%d last decisions: %+v", n, w.rap().Status.Decisions)
				}
				if w.topics != 0 || len(w.rap().Status.Alarms.Rules) > 0 {
					t.Errorf("%d topics, alarms %+v", w.topics, w.rap().Status.Alarms)
				}
			})
		}
	}
}
