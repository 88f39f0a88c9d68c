// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"strings"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// examples returns differences that come from the manuals' examples, and not from the simulation.
func examples() []string {
	return []string{
		// The examples of Cloud Eye are of ECS and ELB.
		`namespace is "SYS\.(ECS|ELB)"|condition\.(filter|unit) is|dimensions\[0\]\.value has the form uuid|metrics\[0\]\.unit is "Ratio"`,
		// eu-de sends +0000, as a capture of 2020 shows. The manual's examples are of another region.
		`has the form time\+0800`,
		// The simulation has no networks.
		`(vpc|subnet|security_group)_id has the form uuid|public_ips has 2 rows`,
	}
}

func bodiesOf() []body {
	// The examples of an instance differ from each other: each leaves out fields that the manual's table has.
	const optional = `(complete_version|alias|associated_with_ddm|charge_info|cpu|mem|enable_ssl|tags) is not in the recording|_dns_names is missing`
	// enlargedBefore enlarges the volume some time before the request.
	enlargedBefore := func(pass time.Duration) func(*populated) {
		return func(c *populated) {
			c.sim.Configure(func(s *simcloud.Settings) { s.EnlargeDuration = 5 * time.Minute })
			job := c.act(202, c.instance, enlarge(200))["job_id"].(string)
			c.pass(pass)
			c.values = strings.NewReplacer("{job}", job)
		}
	}

	refused := func(operation, code string, status int) simcloud.Settings {
		return simcloud.Settings{Refuse: map[string]simcloud.Refusal{operation: {Status: status, Code: code}}}
	}
	enlarged := func(file string, gb int, s simcloud.Settings) body {
		return body{file: file, method: "POST", path: rds + "/instances/{instance}/action", sent: enlarge(gb), settings: s}
	}
	return []body{
		{file: "ces-v1-alarm-create.reply.manual", method: "POST", path: ces + "/alarms", sent: ruleBody("{topic}", "{instance}", 85)},
		{file: "ces-v1-alarm.manual", method: "GET", path: ces + "/alarms/{alarm}"},
		// The first of three examples has no topics.
		{file: "ces-v1-alarms.manual", method: "GET", path: ces + "/alarms", allowed: []string{`(suppress_duration|_actions) is not in the recording`}},
		{file: "ces-v1-metrics.manual", method: "GET", path: ces + "/metrics?limit=1"},
		{file: "ces-v1-quotas.manual", method: "GET", path: ces + "/quotas"},
		{file: "ces-v1-batch-metric-data-ecs.reply.manual", method: "POST", path: ces + "/batch-query-metric-data", sent: batchBody("rds039_disk_util")},
		{file: "iam-token.captured", method: "POST", path: "/iam/v3/auth/tokens", sent: "{login}"},
		{file: "apigw-error-APIGW.0101.captured", method: "GET", path: rds + "/instances/{instance}/binlog/clear-policy"},
		{file: "rds-instances-one.manual", method: "GET", path: rds + "/instances?id={instance}", allowed: []string{optional}},
		{file: "rds-instances-all.manual", method: "GET", path: rds + "/instances", allowed: []string{optional}},
		// Its zones have other names.
		{file: "rds-flavors.manual", method: "GET", path: rds + "/flavors/MySQL?version_name=8.0", allowed: []string{`az_desc\.`}},
		{file: "rds-flavors-resize.manual", method: "GET", path: rds + "/instances/{instance}/flavors-resize"},
		// The examples are jobs of a new instance; the entities of a change are not documented.
		{
			file: "rds-job-running.manual", method: "GET", path: rds + "/jobs?id={job}",
			allowed: []string{`entities.instance is missing`}, prepare: enlargedBefore(time.Minute),
		},
		{
			file: "rds-job-failed.manual", method: "GET", path: rds + "/jobs?id={job}",
			allowed:  []string{`entities.instance is missing`},
			settings: simcloud.Settings{JobsFail: true}, prepare: enlargedBefore(time.Hour),
		},
		{file: "rds-job-reboot-completed.manual", method: "GET", path: rds + "/jobs?id={job}"},
		jobOf(enlarged("rds-enlarge-volume.reply.manual", 120, simcloud.Settings{})),
		jobOf(body{file: "rds-resize-flavor.reply.manual", method: "POST", path: rds + "/instances/{instance}/action", sent: resize("rds.mysql.n1.xlarge.4")}),
		enlarged("rds-error-DBS.200306.captured", 110, simcloud.Settings{}),
		enlarged("rds-error-DBS.200452.captured", 120, refused("EnlargeVolume", "DBS.200452", 409)),
		{file: "rds-error-DBS.280239.captured", method: "POST", path: rds + "/instances/{instance}/action", sent: resize("rds.mysql.none"), settings: refused("ResizeFlavor", "DBS.280239", 400)},
		{file: "smn-topic-create.reply.manual", method: "POST", path: smnv + "/topics", sent: `{"name":"another"}`},
		{file: "smn-topics.manual", method: "GET", path: smnv + "/topics"},
		{file: "smn-topic-delete.reply.manual", method: "DELETE", path: smnv + "/topics/{topic}"},
		{file: "smn-subscription-create.reply.manual", method: "POST", path: smnv + "/topics/{topic}/subscriptions", sent: `{"protocol":"https","endpoint":"https://other.example.com/smn"}`},
		{file: "smn-subscriptions-of-topic.manual", method: "GET", path: smnv + "/topics/{topic}/subscriptions"},
		{file: "smn-subscription-delete.reply.manual", method: "DELETE", path: smnv + "/subscriptions/{subscription}"},
		{file: "smn-error-404.manual", method: "DELETE", path: smnv + "/topics/urn:smn:eu-de:00000000000000000000000000000001:none"},
	}
}

// jobOf allows another form of the job's id: the manual shows a UUID for a new instance, and 32 digits for changes.
func jobOf(b body) body {
	b.allowed = append(b.allowed, `job_id has the form hex32`)
	return b
}

// batchBody asks for the averages of an hour of one metric.
func batchBody(metric string) string {
	return `{"metrics":[{"namespace":"SYS.RDS","metric_name":"` + metric +
		`","dimensions":[{"name":"rds_cluster_id","value":"{instance}"}]}],"from":{from},"to":{to},"period":"1","filter":"average"}`
}
