// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/mcsps/rds-autopilot/autopilot"

// rules returns the rules, this project's first. A rule has the state of one volume, so each volume needs new ones.
func rules() []named {
	free := func(percent, gb float64) func(int, float64) bool {
		return func(sizeGB int, usedGB float64) bool {
			return float64(sizeGB)-usedGB <= max(gb, percent/100*float64(sizeGB))
		}
	}
	grow := func(percent, leastGB int) func(*volume, int) int {
		return func(_ *volume, sizeGB int) int { return sizeGB + max(leastGB, (sizeGB*percent+99)/100) }
	}
	at90 := free(10, 0)
	rule := func(r storageRule, name, does, source string) named {
		return named{described{name, does, source}, r}
	}
	return []named{
		rule(newService(), us, "the defaults of this version", "[decisions](decisions.md#storage-sizes)"),
		rule(&stepRule{values: 5, isShort: at90, step: tens(at90)}, "steps of 10 GB",
			"at 90 % for 5 minutes +10 GB, as often as it takes to be below 90 %",
			"the [archived operator](other-scalers.md#the-autopilot-of-the-archived-operator), improved: the real one waits for 15 minutes, and adds 10 GB also when the alarm ends"),
		rule(&stepRule{isShort: free(10, 10), step: grow(15, 0)}, "OTC", "at 10 % or 10 GB free +15 %",
			"RDS api: configuring_an_autoscaling_policy.rst. Huawei RDS has the same rule"),
		rule(&stepRule{values: 5, isShort: at90, step: sevenHours, apart: 6 * hour}, "AWS, every 6 hours",
			"at 10 % free for 5 minutes + the largest of 10 GB, 10 % and 7 hours by the rate of the last hour; once in 6 hours", awsManual),
		rule(&stepRule{values: 5, isShort: at90, step: sevenHours, perDay: 4}, "AWS, 4 a day",
			"the same, at most 4 times in 24 hours instead of once in 6 hours. The manual limits the number; 4 is assumed, as for EBS", "a newer text of that page"),
		rule(&stepRule{isShort: at90, step: grow(15, 5), apart: 10}, "Alibaba DAS", "at 10 % free +15 %, at least 5 GB; once in 10 minutes",
			"[DAS manual](https://www.alibabacloud.com/help/en/das/user-guide/automatic-space-expansion)"),
		rule(&stepRule{isShort: at90, step: grow(10, 1)}, "pvc-autoresizer", "at 10 % free +10 %",
			"[README](https://github.com/topolvm/pvc-autoresizer)"),
		rule(&stepRule{isShort: azureShort, step: grow(100, 0)}, "Azure PostgreSQL",
			"at 20 % or 64 GB free, whichever is less, twice the size; from 1 TB on at 10 % or 64 GB",
			"MicrosoftDocs/azure-databases-docs, storage autogrow (premium SSD)"),
		rule(&stepRule{isShort: free(20, 0), step: grow(50, 0)}, "KubeDB", "at 80 % used +50 %",
			"kubedb/apimachinery, apis/autoscaling/v1alpha1"),
	}
}

const (
	us        = "rds-autopilot"
	awsManual = "[RDS user guide](https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.Autoscaling.html)"
)

// named is a rule with what the page says of it.
type named struct {
	described
	rule storageRule
}

// stepRule grows a volume by a step when it is short. After a growth of the last hour it acts on the first newer value,
// else on so many values in a row. It grows a read-only database until it is writable.
type stepRule struct {
	values  int // as many values in a row; 0 means one
	isShort func(sizeGB int, usedGB float64) bool
	step    func(v *volume, sizeGB int) int // returns the next size
	apart   int                             // minutes between two growths, at least
	perDay  int                             // growths in 24 hours, at most; 0 means any number
}

func (r *stepRule) next(v *volume) int {
	if v.growing || !r.isDue(v) {
		return v.sizeGB
	}
	return r.grow(v)
}

func (r *stepRule) grow(v *volume) int {
	atMost := v.last() // a read-only database may have reached its limit since
	if v.readOnly {
		atMost = max(atMost, autopilot.ReadOnlyAt(v.sizeGB))
	}
	size := autopilot.RoundUp(r.step(v, v.sizeGB))
	for size < largestGB && v.readOnly && atMost > autopilot.WritableAt(size) {
		size = autopilot.RoundUp(r.step(v, size))
	}
	return size
}

// isDue reports whether the rule acts on the newest values.
func (r *stepRule) isDue(v *volume) bool {
	fresh := v.since() - dataMinutes // values since the last growth
	switch {
	case fresh <= 0, v.since() < r.apart:
		return false
	case r.perDay > 0 && len(v.grown) >= r.perDay && v.minute-v.grown[len(v.grown)-r.perDay] < day:
		return false
	case v.readOnly:
		return true
	}
	count := max(1, r.values)
	if v.since() < hour { // the alarm of the last growth lasts
		count = 1
	}
	for _, gb := range v.used[len(v.used)-count:] {
		if !r.isShort(v.sizeGB, gb) {
			return false
		}
	}
	return true
}

// tens returns the step of 10 GB that is repeated until the volume is not short.
func tens(isShort func(int, float64) bool) func(*volume, int) int {
	return func(v *volume, sizeGB int) int {
		size := sizeGB + 10
		for isShort(size, v.last()) {
			size += 10
		}
		return size
	}
}

// sevenHours returns the size of AWS's rule.
func sevenHours(v *volume, sizeGB int) int {
	rate := v.last() - v.used[len(v.used)-1-hour]
	return max(sizeGB+max(10, sizeGB/10), int(v.last()+7*rate))
}

// azureShort reports whether Azure's rule acts.
func azureShort(sizeGB int, usedGB float64) bool {
	share := 0.2
	if sizeGB > 1024 {
		share = 0.1
	}
	return float64(sizeGB)-usedGB < min(64, share*float64(sizeGB))
}
