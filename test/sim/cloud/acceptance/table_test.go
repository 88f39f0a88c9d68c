// SPDX-License-Identifier: Apache-2.0

package acceptance

// sdk is the module with the tests, and folder is where it has them.
const (
	sdk    = "github.com/opentelekomcloud/gophertelekomcloud"
	folder = sdk + "/acceptance/openstack/"
)

// A result is what becomes of one acceptance test of the SDK in the simulated cloud.
type result struct {
	suite, test string
	// stops is the call, as a pattern of path.Match, at which a test ends because the simulation does not offer it. It is
	// empty for a test that passes. The simulation must answer all calls before it as the test expects.
	stops string
	// says is in the output of a test that ends before it calls a service.
	says string
	// why the simulation does not offer it.
	why string
}

const (
	noEndpoint  = "No suitable endpoint could be found in the service catalog"
	unusedByUs  = "the service never makes this call, so an answer of the simulation would test nothing"
	templates   = "message templates: the service publishes nothing, and Cloud Eye writes the text of an alarm itself"
	noTemplates = "parameter templates: the service changes no parameters of a database"
	backups     = "backups: the service neither makes nor restores them"
)

// results has a row for each acceptance test.
func results() []result {
	return []result{
		{suite: "smn/v2", test: "TestTopicSubscriptionWorkflow"},
		{
			suite: "smn/v2", test: "TestMessagePublishWorkflow",
			stops: "POST /smn/v2/*/notifications/topics/*/publish", why: "publishing: " + unusedByUs,
		},
		{
			suite: "smn/v2", test: "TestTemplatesWorkflow",
			stops: "POST /smn/v2/*/notifications/message_template", why: templates,
		},
		{
			suite: "smn/v2", test: "TestTopicAttributeWorkflow",
			stops: "PUT /smn/v2/*/notifications/topics/*/attributes/access_policy",
			why:   "access policies: Cloud Eye needs none to publish to a topic of the tenant",
		},
		{
			suite: "smn/v2", test: "TestTopicsWorkflow",
			stops: "POST /smn/v2/*/smn_topic/*/tags/action", why: "tags of topics: " + unusedByUs,
		},

		{suite: "ces/v1", test: "TestAlarms"},
		{suite: "ces/v1", test: "TestMetrics"},
		{suite: "ces/v1", test: "TestQuotas"},
		{suite: "ces/v1", test: "TestEvents", stops: "POST /ces/V1.0/*/events", why: "events: " + unusedByUs},
		{
			suite: "ces/v1", test: "TestMetricData",
			says: noEndpoint, why: "servers (ECS) and metrics of one's own: " + unusedByUs,
		},

		{
			suite: "rds/v3", test: "TestFlavorsList",
			stops: "GET /rds/v3/*/datastores/PostgreSQL", why: "versions and storage types: " + unusedByUs,
		},
		{suite: "rds/v3", test: "TestRdsAutoScaling"},
		{
			suite: "rds/v3", test: "TestRdsLifecycle",
			stops: "GET /rds/v3/*/collations", why: "collations: " + unusedByUs,
		},
		{suite: "rds/v3", test: "TestRdsBackupLifecycle", stops: "POST /rds/v3/*/backups", why: backups},
		{suite: "rds/v3", test: "TestBackupRestorePointInTime", stops: "POST /rds/v3/*/backups", why: backups},
		{
			suite: "rds/v3", test: "TestBackupKeepDays",
			stops: "PUT /rds/v3/*/instances/*/backups/policy", why: backups,
		},
		{suite: "rds/v3", test: "TestConfigurations", stops: "POST /rds/v3/*/configurations", why: noTemplates},
		{
			suite: "rds/v3", test: "TestConfigurationsLifecycle",
			stops: "POST /rds/v3/*/configurations", why: noTemplates,
		},
		{suite: "rds/v3", test: "TestConfigurationsList", stops: "GET /rds/v3/*/configurations", why: noTemplates},
	}
}
