// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type service string

const (
	serviceIAM service = "iam"
	serviceSMN service = "smn"
	serviceCES service = "ces"
	serviceRDS service = "rds"
)

type operation string

const (
	opLogin operation = "Login"

	opListInstances     operation = "ListInstances"
	opListFlavors       operation = "ListFlavors"
	opListResizeTargets operation = "ListResizeTargets"
	opEnlarge           operation = "EnlargeVolume"
	opResize            operation = "ResizeFlavor"
	opGetJob            operation = "GetJob"

	opListRules   operation = "ListRules"
	opGetRule     operation = "GetRule"
	opCreateRule  operation = "CreateRule"
	opModifyRule  operation = "ModifyRule"
	opEnableRule  operation = "EnableRule"
	opDeleteRule  operation = "DeleteRule"
	opListMetrics operation = "ListMetrics"
	opQueryData   operation = "QueryMetricData"
	opGetQuotas   operation = "GetQuotas"

	opListTopics             operation = "ListTopics"
	opCreateTopic            operation = "CreateTopic"
	opDeleteTopic            operation = "DeleteTopic"
	opListTopicSubscriptions operation = "ListTopicSubscriptions"
	opSubscribe              operation = "Subscribe"
	opUnsubscribe            operation = "Unsubscribe"
)

type traits struct {
	service service
	holds   string // a key that the reply must have, because an empty document must not read as an empty list
	read    bool   // whether it is a POST that changes nothing, which may be retried like a GET
	action  string // the required permission, as the cloud's policies name it; empty if none is required
}

func operations() map[operation]traits {
	return map[operation]traits{
		opLogin: {service: serviceIAM, read: true},

		opListInstances:     {service: serviceRDS, holds: "instances", action: "rds:instance:list"},
		opListFlavors:       {service: serviceRDS, holds: "flavors"},
		opListResizeTargets: {service: serviceRDS, holds: "flavor_groups", action: "rds:instance:list"},
		opEnlarge:           {service: serviceRDS, holds: "job_id", action: "rds:instance:extendSpace"},
		opResize:            {service: serviceRDS, holds: "job_id", action: "rds:instance:modifySpec"},
		opGetJob:            {service: serviceRDS, holds: "job"}, // no permission is documented for it

		opListRules:   {service: serviceCES, holds: "metric_alarms", action: "ces:alarms:list"},
		opGetRule:     {service: serviceCES, holds: "metric_alarms", action: "ces:alarms:get"},
		opCreateRule:  {service: serviceCES, holds: "alarm_id", action: "ces:alarms:create"},
		opModifyRule:  {service: serviceCES, action: "ces:alarms:put"},
		opEnableRule:  {service: serviceCES, action: "ces:alarmsOnOff:put"},
		opDeleteRule:  {service: serviceCES, action: "ces:alarms:delete"},
		opListMetrics: {service: serviceCES, holds: "metrics", action: "ces:metrics:list"},
		opQueryData:   {service: serviceCES, holds: "metrics", read: true, action: "ces:metricData:list"},
		opGetQuotas:   {service: serviceCES, holds: "quotas", action: "ces:quotas:get"},

		opListTopics:             {service: serviceSMN, holds: "topics", action: "smn:topic:list"},
		opCreateTopic:            {service: serviceSMN, holds: "topic_urn", action: "smn:topic:create"},
		opDeleteTopic:            {service: serviceSMN, action: "smn:topic:delete"},
		opListTopicSubscriptions: {service: serviceSMN, holds: "subscriptions", action: "smn:topic:list"},
		opSubscribe:              {service: serviceSMN, holds: "subscription_urn", action: "smn:topic:update"},
		opUnsubscribe:            {service: serviceSMN, action: "smn:topic:update"},
	}
}

// Rights returns the permission that each operation needs, as the cloud's policies name it; empty if it needs none (RDS
// api: rds_actions.rst; CES api: supported_actions_of_the_alarm_rule_management_apis.rst; SMN umn: permissions.rst).
func Rights() map[string]string {
	rights := map[string]string{}
	for op, is := range operations() {
		rights[string(op)] = is.action
	}
	return rights
}

func newUpGauge(r prometheus.Registerer) prometheus.Gauge {
	return promauto.With(r).NewGauge(prometheus.GaugeOpts{
		Name: "rds_autopilot_cloud_logged_in",
		Help: "1 if the cloud accepted our credentials at the last login, 0 if it refused them or was never reached.",
	})
}

// newRequestCounter returns the counter of sent requests, retries included. All operations are present from the
// start, so that a rate over the first failure is not lost.
func newRequestCounter(r prometheus.Registerer) *prometheus.CounterVec {
	requests := promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "rds_autopilot_cloud_requests_total",
		Help: "Requests sent to the cloud, by service, operation and HTTP status (error: no answer).",
	}, []string{"cloud_service", "operation", "code"})
	for op, is := range operations() {
		for _, code := range []string{"200", "error"} {
			requests.WithLabelValues(string(is.service), string(op), code)
		}
	}
	return requests
}
