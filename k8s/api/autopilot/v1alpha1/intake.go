// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Intake holds what the webhook has stored.
type Intake struct {
	// signals holds the newest signal of each metric, by the alarm's own time.
	// +listType=map
	// +listMapKey=metric
	// +optional
	Signals []Signal `json:"signals,omitempty"`
	// signingCertURL is the URL of the certificate that signed the last stored message. A replica that has just started
	// fetches this certificate before any URL that an unverified message names.
	// +optional
	SigningCertURL string `json:"signingCertURL,omitempty"`
}

// Signal is an authentic alarm message. It starts a check of the database and is no order to change it.
type Signal struct {
	// metric is the metric of the alarm: storage, cpu or memory.
	Metric Metric `json:"metric"`
	// alarmID is the id of the alarm rule in Cloud Eye.
	AlarmID string `json:"alarmID"`
	// state is the state of the alarm as Cloud Eye names it: ok, alarm or insufficient_data.
	State State `json:"state"`
	// valuePercent is the newest value in the message, in percent.
	// +optional
	ValuePercent string `json:"valuePercent,omitempty"`
	// datapointTime is when Cloud Eye measured that value.
	// +optional
	DatapointTime *metav1.MicroTime `json:"datapointTime,omitempty"`
	// alarmTime is when Cloud Eye raised or cleared the alarm.
	AlarmTime metav1.MicroTime `json:"alarmTime"`
	// messageID is SMN's id of the message.
	MessageID string `json:"messageID"`
	// receivedTime is when the webhook stored the message.
	ReceivedTime metav1.MicroTime `json:"receivedTime"`
}
