// SPDX-License-Identifier: Apache-2.0

package doctor

// Assumption is something that the service relies on, or is prepared for, and that nobody has seen in the real cloud.
type Assumption struct {
	ID      string // also the simulated cloud's name for what breaks it
	Assumed string
	Why     string // where it is from: a section of docs/cloud-facts.md
	IfWrong string // what the service does then
}

// Assumptions returns all of them, by what they are about. docs/cloud-facts.md has the same table.
func Assumptions() []Assumption {
	const (
		unconfirmed = "The subscription stays unconfirmed: `Armed` is False with `SubscriptionPending`. The sweep acts on alarms"
		unread      = "A Warning `AlarmUnreadable`. The sweep acts on the alarm"
		met         = "Nothing: both ways are known"
	)
	return []Assumption{
		{"cert-host", "Signing certificates are on SMN's own host in the catalogue", "inferred: [certificate and links](#certificate-and-links)", unconfirmed + ". `--smn-cert-hosts` names another host"},
		{"cert-pem", "A certificate is a PEM file with an RSA key", "documented for another cloud of the family: [certificate and links](#certificate-and-links)", unconfirmed},
		{"signed-text", "Each line of the signed text ends with a line feed, the last one too", "observed in captures of another cloud: [signature](#signature)", unconfirmed},
		{"signature-algorithm", "SHA-256 with RSA PKCS #1 v1.5 signs", "documented in samples: [signature](#signature)", unconfirmed},
		{"confirm-host", "Confirmation links lead to the console's host", "inferred: [certificate and links](#certificate-and-links)", unconfirmed + ", and a Warning `ConfirmationRefused` names the host. `--smn-confirm-hosts` allows it"},
		{"confirm-path", "Their path is `/smn/subscription/confirm`, and they name the topic", "documented, masked: [certificate and links](#certificate-and-links)", "Nothing: any path will do, and a link that names no topic, because the link is signed"},
		{"confirm-answer", "A GET without a login confirms, and answers 2xx", "documented; the answer is observed in another cloud: [certificate and links](#certificate-and-links)", unconfirmed + ", and a Warning `ConfirmationRefused` has the status"},
		{"confirm-again", "Subscribing again sends the confirmation again", "documented: [SMN API](#smn-api)", "A confirmation that was lost does not come again: `SubscriptionPending`. The sweep acts on alarms"},
		{"message-id", "A message id has 32 hexadecimal digits", "observed: [SMN messages](#smn-messages)", "Nothing: up to 64 letters, digits and hyphens will do"},
		{"timestamp-form", "Timestamps have whole seconds", "documented: [SMN messages](#smn-messages)", "Nothing: fractions will do"},
		{"timestamp-utc", "They are UTC", "documented: [SMN messages](#smn-messages)", "Messages are refused as too old or of the future. " + unconfirmed},
		{"strings-only", "All values of a message are strings", "documented: [SMN messages](#smn-messages)", "Nothing where an optional field is null; otherwise the message is malformed"},
		{"smn-headers", "Messages have headers `X-SMN-…`", "documented: [SMN messages](#smn-messages)", "Nothing: they are not looked at"},
		{"sends-again", "SMN sends again after a status of 500 and more, or no answer", "documented for another cloud of the family: [delivery](#delivery)", "A message that came while no replica ran is lost. The sweep acts on the alarm"},
		{"sent-again-same", "What is sent again has the same message id", "inferred: [delivery](#delivery)", "Nothing: the same alarm under another id changes nothing"},
		{"cloud-eye-publishes", "Cloud Eye may publish to every topic of the tenant", "documented: [SMN API](#smn-api)", "No message comes. The sweep acts on the alarms"},
		{"topic-exists", "Creating a topic that exists is no error", "documented: [SMN API](#smn-api)", "A topic that was made and not recorded, because the process ended just then, is not found: `CloudUnreachable` with SMN's words. The sweep acts on alarms"},
		{"subscription-exists", "Subscribing what is subscribed answers with its URN", "documented, in conflict: [SMN API](#smn-api)", met},
		{"subscription-status", "The status of a confirmed subscription is 1", "documented: [SMN API](#smn-api)", "`Armed` is False with `SubscriptionPending`, although alarms come and are acted on"},
		{"listed-as-sent", "Endpoints and rules are listed as they were sent", "unknown: [alarm rules](#alarm-rules)", "A repair that changes nothing is told once and not repeated"},
		{"payload-schema", "An alarm has the schema that was captured in 2022", "observed: [alarm payload](#alarm-payload)", unread},
		{"payload-status", "`alarm_status` is `alarm` or `ok`, in small letters", "observed: [alarm payload](#alarm-payload)", "Nothing: capitals will do"},
		{"payload-time", "Times in it are milliseconds", "observed: [alarm payload](#alarm-payload)", unread},
		{"payload-rule", "`alarm_id` is the id of the rule", "observed: [alarm payload](#alarm-payload)", unread},
		{"payload-dimension", "`dimension` is text, `name:value`", "observed: [alarm payload](#alarm-payload)", unread},
		{"payload-percent", "Its values are percent", "observed: [alarm payload](#alarm-payload)", "Nothing: what is decided on is read from Cloud Eye"},
		{"rule-new", "A new rule begins in `ok`", "observed: [alarm rules](#alarm-rules)", "Nothing: half an hour without data is normal for a new rule"},
		{"rule-rewritten", "A rule that is rewritten keeps its state", "unknown: [alarm rules](#alarm-rules)", "Nothing: for an hour after a growth the used space decides"},
		{"rule-states", "States are listed in small letters", "documented: [alarm rules](#alarm-rules)", "Nothing: capitals will do. With words that are not known, storage is acted on by its used space, with a Warning `RuleSilent`"},
		{"rule-update-time", "`update_time` is when the state changed", "documented, in doubt: [alarm rules](#alarm-rules)", "Times in messages for people are wrong"},
		{"rule-pages", "A page of rules begins after the rule that is named", "documented, in conflict: [alarm rules](#alarm-rules)", met},
		{"rule-raw", "A rule of period 1 is evaluated every minute", "documented: [alarm rules](#alarm-rules)", "Storage is acted on by its used space at each sweep, 15 minutes after the alarm should have come, with a Warning `RuleSilent`"},
		{"metric-percent", "Percentages are 0 to 100", "documented, in conflict: [metrics](#metrics)", "As `rule-raw` for storage. CPU and memory raise no alarm: a Warning `NotPercent` says so at the first sweep"},
		{"metric-delay", "Values are at most 10 minutes late", "documented: [metrics](#metrics)", "Values older than 30 minutes are not acted on: a Warning `NoData` with each alarm"},
		{"metric-used-space", "`rds048_disk_used_size` has data", "documented: [metrics](#metrics)", "Nothing: the percentage of the size is used"},
		{"datapoint-utc", "Times of datapoints are UTC", "inferred: [metric data](#metric-data)", "Storage is acted on. A flavor could be changed a second time by a value from before the first change, within cooldown and budget"},
		{"instance-dimension", "Data is under the dimension of the instance", "documented, in doubt: [dimensions](#dimensions)", "The rules watch the primary node instead, 30 minutes after the instance is `ACTIVE`"},
		{"instance-primary", "With HA, that dimension shows the primary node", "inferred: [dimensions](#dimensions)", "The rules watch the primary node instead, once its load differs from the standby's by 10 percentage points"},
		{"catalogue-cloud-eye", "The catalogue has an entry for Cloud Eye", "unknown: [identity and endpoints](#identity-and-endpoints)", "Nothing: it is derived from the entry of block storage"},
		{"storage-full-listed", "A full instance is listed as `STORAGE FULL`", "inferred: [instances](#instances)", "It counts as `ACTIVE`: a growth that the cloud does not do is called `Stalled`"},
		{"enlarge-when-full", "A full instance can be enlarged", "documented, in conflict: [volumes](#volumes)", "It is asked for once, and a Warning `StorageFull` says that the cloud may refuse"},
		{"resize-list", "The cloud has a resize list of each instance", "documented: [flavors](#flavors)", "Flavors of the same family only"},
	}
}
