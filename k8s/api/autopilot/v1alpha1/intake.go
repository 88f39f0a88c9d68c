// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Intake is what the webhook has stored.
type Intake struct {
	// signals: the newest of each metric, by the alarm's own time.
	// +listType=map
	// +listMapKey=metric
	// +optional
	Signals []Signal `json:"signals,omitempty"`
	// signingCertURL is where the certificate of the last stored message is. A replica that has just started fetches it
	// before those that strangers name.
	// +optional
	SigningCertURL string `json:"signingCertURL,omitempty"`
	// subscription is the last confirmation or cancellation seen.
	// +optional
	Subscription *SubscriptionSignal `json:"subscription,omitempty"`
	// captured are the messages of a topic that rds-autopilot doctor has made, oldest first, with what became of each. A
	// database has none.
	// +kubebuilder:validation:MaxItems=12
	// +listType=atomic
	// +optional
	Captured []CapturedMessage `json:"captured,omitempty"`
}

// CapturedMessage is a message as it came, whether or not it is authentic.
type CapturedMessage struct {
	// receivedTime is when it came.
	ReceivedTime metav1.MicroTime `json:"receivedTime"`
	// result is what became of it, as in the metric rds_autopilot_notifications_total.
	// +kubebuilder:validation:MaxLength=64
	Result string `json:"result"`
	// error is why, where there is something to explain.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Error string `json:"error,omitempty"`
	// headers are the names of those that are SMN's own, and the type of the content.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Headers []string `json:"headers,omitempty"`
	// body is that of the request, without signature and tokens.
	// +kubebuilder:validation:MaxLength=32768
	Body string `json:"body"`
}

// Signal is an authentic alarm message: a reason to look, not an order.
type Signal struct {
	// metric of the alarm: storage, cpu or memory.
	Metric Metric `json:"metric"`
	// alarmID is the id of its rule in Cloud Eye.
	AlarmID string `json:"alarmID"`
	// state in Cloud Eye's words: ok, alarm or insufficient_data.
	State State `json:"state"`
	// valuePercent is the newest value the message carries, in percent.
	// +optional
	ValuePercent string `json:"valuePercent,omitempty"`
	// datapointTime is when that value was measured.
	// +optional
	DatapointTime *metav1.MicroTime `json:"datapointTime,omitempty"`
	// alarmTime is the alarm's own time.
	AlarmTime metav1.MicroTime `json:"alarmTime"`
	// messageID is SMN's.
	MessageID string `json:"messageID"`
	// receivedTime is when it was stored.
	ReceivedTime metav1.MicroTime `json:"receivedTime"`
}

// SubscriptionSignal is the last confirmation or cancellation seen.
type SubscriptionSignal struct {
	// type of the message: SubscriptionConfirmation or UnsubscribeConfirmation.
	Type string `json:"type"`
	// messageID is SMN's.
	MessageID string `json:"messageID"`
	// sentTime is when it was first sent, as signed.
	// +optional
	SentTime *metav1.MicroTime `json:"sentTime,omitempty"`
	// receivedTime is when it was stored.
	ReceivedTime metav1.MicroTime `json:"receivedTime"`
}
