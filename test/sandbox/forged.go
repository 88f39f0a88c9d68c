// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// forged makes a message about a database that was changed after it was signed.
func forged(w *world.World, db *world.DB) (id string, body []byte, err error) {
	rule, ok := db.Rule(v1alpha1.MetricStorage)
	if !ok {
		return "", nil, errors.New("no rule to forge a message of")
	}
	now := time.Now()
	subject, harmless, err := w.Cloud.AlarmMessage(rule.ID, simcloud.StateAlarm, 75, now, now)
	if err != nil {
		return "", nil, err
	}
	envelope := w.Cloud.Sign(simcloud.Envelope{TopicURN: w.TopicURN(), Subject: subject, Message: harmless})
	if _, envelope.Message, err = w.Cloud.AlarmMessage(rule.ID, simcloud.StateAlarm, 99, now, now); err != nil {
		return "", nil, err
	}
	return envelope.MessageID, envelope.JSON(), nil
}
