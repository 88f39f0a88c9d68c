// SPDX-License-Identifier: Apache-2.0

package doctor

// Assumption is a behaviour of the cloud that the service relies on or is prepared for, and that is not confirmed in
// the real cloud.
type Assumption struct {
	ID      string // the simulated cloud can violate each assumption by this ID
	Assumed string
	Why     string // its source, and a section of docs/cloud-facts.md
	IfWrong string // the effect if the assumption is wrong; it begins with "Nothing" if there is none
}

// Assumptions returns all assumptions by subject. docs/cloud-facts.md has the same table.
func Assumptions() []Assumption {
	const (
		unconfirmed = "The subscription stays unconfirmed: `Armed` is False with `SubscriptionPending`. The sweep acts on alarms"
		unread      = "A Warning `AlarmUnreadable`. The sweep acts on the alarm"
		met         = "Nothing: the service handles both"
	)
	return []Assumption{
		{"cert-host", "Signing certificates are on SMN's own host in the catalogue",
			"inferred: [certificate and links](#certificate-and-links)",
			unconfirmed + ". `--smn-cert-hosts` names another host"},
		{"cert-pem", "A certificate is a PEM file with an RSA key",
			"documented for another cloud of the family: [certificate and links](#certificate-and-links)", unconfirmed},
		{"signed-text", "Each line of the signed text ends with a line feed, the last one too",
			"observed in captures of another cloud: [signature](#signature)", unconfirmed},
		{"signature-algorithm", "The signature is RSA PKCS #1 v1.5 with SHA-256",
			"documented in samples: [signature](#signature)", unconfirmed},
		{"confirm-host", "Confirmation links lead to the console's host",
			"inferred: [certificate and links](#certificate-and-links)",
			unconfirmed + ", and a Warning `ConfirmationRefused` names the host. `--smn-confirm-hosts` allows it"},
		{"confirm-path", "The path of confirmation links is `/smn/subscription/confirm`, and they name the topic",
			"documented, masked: [certificate and links](#certificate-and-links)",
			"Nothing: the receiver accepts any path, also without a topic, because the link is signed"},
		{"confirm-answer", "A GET without a login confirms, and answers 2xx",
			"documented; the answer is observed in another cloud: [certificate and links](#certificate-and-links)",
			unconfirmed + ", and a Warning `ConfirmationRefused` has the status"},
		{"confirm-again", "Subscribing a second time sends the confirmation again", "documented: [SMN API](#smn-api)",
			"SMN does not repeat a lost confirmation: `SubscriptionPending`. The sweep acts on alarms"},
		{"message-id", "A message id has 32 hexadecimal digits", "observed: [SMN messages](#smn-messages)",
			"Nothing: the receiver accepts up to 64 letters, digits and hyphens"},
		{"timestamp-form", "Timestamps have whole seconds", "documented: [SMN messages](#smn-messages)",
			"Nothing: the receiver accepts fractions"},
		{"timestamp-utc", "Timestamps are UTC", "documented: [SMN messages](#smn-messages)",
			"The receiver refuses messages as too old or too far ahead. " + unconfirmed},
		{"strings-only", "All values of a message are strings", "documented: [SMN messages](#smn-messages)",
			"Nothing if an optional field is null. Otherwise the receiver rejects the message as malformed"},
		{"smn-headers", "Messages have headers `X-SMN-…`", "documented: [SMN messages](#smn-messages)",
			"Nothing: the receiver does not read them"},
		{"sends-again", "SMN sends a message again after a status of 500 and more, or no answer",
			"documented for another cloud of the family: [delivery](#delivery)",
			"A message that came while no replica ran is lost. The sweep acts on the alarm"},
		{"sent-again-same", "A message that SMN sends again has the same message id", "inferred: [delivery](#delivery)",
			"Nothing: the same alarm under another id changes nothing"},
		{"cloud-eye-publishes", "Cloud Eye may publish to every topic of the tenant", "documented: [SMN API](#smn-api)",
			"No message comes. The sweep acts on the alarms"},
		{"topic-exists", "Creating a topic that exists is no error", "documented: [SMN API](#smn-api)",
			"If the process ends between creating a topic and recording it, the service does not find the topic: `CloudUnreachable` with SMN's error. The sweep acts on alarms"},
		{"subscription-exists", "Subscribing an endpoint a second time returns the URN of its subscription",
			"documented, in conflict: [SMN API](#smn-api)", met},
		{"subscription-status", "The status of a confirmed subscription is 1", "documented: [SMN API](#smn-api)",
			"`Armed` is False with `SubscriptionPending`, although the service receives alarms and acts on them"},
		{"listed-as-sent", "The cloud lists endpoints and rules as they were sent", "unknown: [alarm rules](#alarm-rules)",
			"The service reports a repair without effect once and does not repeat it"},
		{"payload-schema", "An alarm has the schema that was captured in 2022", "observed: [alarm payload](#alarm-payload)",
			unread},
		{"payload-status", "`alarm_status` is `alarm` or `ok`, in lower case", "observed: [alarm payload](#alarm-payload)",
			"Nothing: the service accepts capitals"},
		{"payload-time", "Times in an alarm are milliseconds", "observed: [alarm payload](#alarm-payload)", unread},
		{"payload-rule", "`alarm_id` is the id of the rule", "observed: [alarm payload](#alarm-payload)", unread},
		{"payload-dimension", "`dimension` is text, `name:value`", "observed: [alarm payload](#alarm-payload)", unread},
		{"payload-percent", "The values of an alarm are percent", "observed: [alarm payload](#alarm-payload)",
			"Nothing: the service reads the values for its decisions from Cloud Eye"},
		{"rule-new", "A new rule has the state `ok`", "observed: [alarm rules](#alarm-rules)",
			"Nothing: the service allows a new rule half an hour without data"},
		{"rule-rewritten", "A rewritten rule keeps its state", "unknown: [alarm rules](#alarm-rules)",
			"Nothing: for an hour after a growth the used space decides"},
		{"rule-states", "States are listed in lower case", "documented: [alarm rules](#alarm-rules)",
			"Nothing: the service accepts capitals. With an unknown state, it grows storage by the used space, with a Warning `RuleSilent`"},
		{"rule-update-time", "`update_time` is when the state changed", "documented, in doubt: [alarm rules](#alarm-rules)",
			"Events and conditions show wrong times"},
		{"rule-pages", "A page of rules begins after the rule in the parameter `start`",
			"documented, in conflict: [alarm rules](#alarm-rules)", met},
		{"rule-raw", "Cloud Eye evaluates a rule of period 1 every minute", "documented: [alarm rules](#alarm-rules)",
			"The sweep grows storage by its used space, 15 minutes after the alarm was due, with a Warning `RuleSilent`"},
		{"metric-percent", "Percentages are 0 to 100", "documented, in conflict: [metrics](#metrics)",
			"Storage: as for `rule-raw`. CPU and memory raise no alarm. Only `doctor` detects this"},
		{"metric-delay", "Values are at most 10 minutes late", "documented: [metrics](#metrics)",
			"The service does not act on values older than 30 minutes: a Warning `NoData` with each alarm"},
		{"metric-used-space", "`rds048_disk_used_size` has data", "documented: [metrics](#metrics)",
			"Nothing: the service calculates the used space from the percentage and the size"},
		{"datapoint-utc", "Times of datapoints are UTC", "inferred: [metric data](#metric-data)",
			"Nothing grows, because each value is dated ahead and counts as missing. The Warning `NoData` reports it"},
		{"instance-dimension", "Cloud Eye stores data under the dimension of the instance",
			"documented, in doubt: [dimensions](#dimensions)",
			"The rules watch the primary node instead, 30 minutes after the instance is `ACTIVE`"},
		{"instance-primary", "With HA, that dimension shows the primary node", "inferred: [dimensions](#dimensions)",
			"A busy primary leads to no larger flavor, and no Warning reports it. Storage is not affected"},
		{"catalogue-cloud-eye", "The catalogue has an entry for Cloud Eye",
			"unknown: [identity and endpoints](#identity-and-endpoints)",
			"Nothing: the service derives it from the entry of block storage"},
		{"storage-full-listed", "RDS lists a full instance as `STORAGE FULL`", "inferred: [instances](#instances)",
			"The instance counts as `ACTIVE`. A growth that the cloud does not carry out becomes `Stalled`"},
		{"enlarge-when-full", "RDS can enlarge a full instance", "documented, in conflict: [volumes](#volumes)",
			"The service requests the growth once, and a Warning `StorageFull` reports that the cloud may refuse it"},
		{"resize-list", "The cloud has a resize list of each instance", "documented: [flavors](#flavors)",
			"The service considers only flavors of the same family"},
	}
}
