// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// flavorRules returns the rules, this project's first. A rule has the state of one instance.
func flavorRules() []named[flavorRule] {
	rule := func(r flavorRule, name, does, source string) named[flavorRule] {
		return named[flavorRule]{described{name, does, source}, r}
	}
	return []named[flavorRule]{
		rule(flavorService{newService(v1alpha1.MetricCPU)}, us, "the defaults of this version, for CPU alone", "[decisions](decisions.md#flavors)"),
		rule(upOnly{}, "archived operator", "at 90 % for 15 minutes the next larger flavor, without a cooldown",
			"the [archived operator](other-scalers.md#the-autopilot-of-the-archived-operator), improved: the real one also enlarges when the alarm ends"),
		rule(window{}, "window", "one class up if the average of 15 minutes is 90 %; one class down, to the first at most, if the CPU was below 30 % for 25 minutes; once in 60 minutes. The user sets these numbers; they are ours here, and DAS's for the way down",
			"[Alibaba DAS](https://www.alibabacloud.com/help/en/rds/apsaradb-rds-for-mysql/enable-the-automatic-scale-up-feature-for-an-apsaradb-rds-for-mysql-instance), [Huawei RDS](https://support.huaweicloud.com/intl/en-us/usermanual-rds-mysql/rds_05_0097.html)"),
		rule(&vpa{}, "VPA", "the 90th percentile of samples that lose half of their weight in a day, +15 %. It acts outside of the 50th and the 95th percentile, and every 12 hours",
			"[kubernetes/autoscaler](https://github.com/kubernetes/autoscaler/tree/master/vertical-pod-autoscaler), recommender and updater. KubeDB uses it"),
		rule(never{}, "never", "nothing", ""),
	}
}

type never struct{}

func (never) next(v *server) int { return v.vcpus }

type upOnly struct{}

func (upOnly) next(v *server) int {
	if v.fresh() < 15 {
		return v.vcpus
	}
	for period := range slices.Chunk(v.percent[len(v.percent)-15:], 5) {
		if mean(period) < 90 {
			return v.vcpus
		}
	}
	return 2 * v.vcpus
}

type window struct{}

func (window) next(v *server) int {
	const quiet, up, down = hour, 15, 25
	if v.changedAt > 0 && v.minute-v.changedAt < quiet {
		return v.vcpus
	}
	if v.fresh() >= up && mean(v.percent[len(v.percent)-up:]) >= 90 {
		return 2 * v.vcpus
	}
	if v.fresh() < down || v.vcpus <= v.first {
		return v.vcpus
	}
	if slices.Max(v.percent[len(v.percent)-down:]) >= 30 {
		return v.vcpus
	}
	return v.vcpus / 2
}

// vpa is the rule of the Vertical Pod Autoscaler in its mode Recreate, for whole flavors.
type vpa struct {
	weights [300]float64 // by bucket; each is 5 % larger than the one before, the first ends at 0.01 vCPUs
	read    int          // so many values are in the buckets
}

const vpaFirst, vpaBucket = 0.01, 1.05

func (r *vpa) next(v *server) int {
	for ; r.read < len(v.used); r.read++ {
		bucket := math.Ceil(math.Log(max(v.used[r.read], vpaFirst)/vpaFirst) / math.Log(vpaBucket))
		r.weights[int(bucket)] += math.Exp2(float64(r.read) / day)
	}
	if v.changing {
		return v.vcpus
	}
	days := float64(r.read) / day
	const margin = 1.15
	target := margin * r.percentile(0.9)
	lower := margin * r.percentile(0.5) * math.Pow(1+0.001/days, -2)
	upper := margin * r.percentile(0.95) * (1 + 1/days)
	has, next := float64(v.vcpus), smallestVCPUs
	for float64(next) < target && next < largestVCPUs {
		next *= 2
	}
	if has < lower || has > upper || v.minute-v.changedAt >= 12*hour {
		return next
	}
	return v.vcpus
}

// percentile returns the end of the bucket in vCPUs below which that share of the weight lies.
func (r *vpa) percentile(q float64) float64 {
	all, sum := 0.0, 0.0
	for _, weight := range r.weights {
		all += weight
	}
	for bucket, weight := range r.weights {
		if sum += weight; sum >= q*all {
			return vpaFirst * math.Pow(vpaBucket, float64(bucket))
		}
	}
	return 0
}

func mean(values []float64) (m float64) {
	for _, value := range values {
		m += value / float64(len(values))
	}
	return m
}
