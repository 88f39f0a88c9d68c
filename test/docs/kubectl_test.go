// SPDX-License-Identifier: Apache-2.0

package manual

import "testing"

const policy = `
apiVersion: autopilot.otc.mcsps.de/v1alpha1
kind: RdsAutopilot
metadata:
  name: my-rds
spec:
`

func TestKubectlShowsColumnsDescriptionsAndConditions(t *testing.T) {
	s := newShell(t)
	s.must(t, "kubectl create namespace shop && kubectl config set-context --current --namespace=shop")

	s.must(t, "kubectl apply -f - <<'END'"+policy+"  mode: Recommend\nEND")
	s.must(t, "kubectl apply -f deploy/examples/rds.yaml")
	s.waitFor(t, "kubectl wait --for=condition=Armed rap/my-rds --timeout=90s", "condition met")
	s.waitFor(t, "kubectl wait --for=condition=Ready rap/my-rds --timeout=90s", "condition met")
	s.waitFor(t, "kubectl get rap", "NAME MODE ARMED VOLUME MAX FLAVOR LAST CHANGE LAST DECISION AGE", "my-rds Recommend True 40 GB 200 GB rds.mysql.n1.medium.4 Recommend (storage)")
	s.waitFor(t, "kubectl get rap -o wide", "LAST DECISION AGE USED READY REASON", "True AlarmsInPlace")
	s.waitFor(t, "kubectl get rds", "NAME ENGINE VERSION VOLUME FLAVOR STATUS AGE", "my-rds MySQL 8.0 40 rds.mysql.n1.medium.4 ACTIVE")
	s.waitFor(t, "kubectl explain rap.spec.mode", `Default: Auto.`, `in quotes`)
	s.waitFor(t, "kubectl explain rap.spec.storage.maxGB", "40 to 4000", "Default: four times the volume")
	s.waitFor(t, "kubectl explain rap.spec.storage.alarm", "periodSeconds <integer>", "enum: 1, 300, 1200, 3600, ....", "Default: 900.")
	s.waitFor(t, "kubectl explain rap.status.summary", "40 → 50 GB")
	s.waitFor(t, "kubectl describe rap my-rds", "Type: Ready", "Reason: AlarmsInPlace", "Armed", "Mode: Recommend")

	s.must(t, `kubectl patch rap my-rds --type=merge -p '{"spec":{"mode":"Auto"}}'`)
	s.waitFor(t, "kubectl get rap", "my-rds Auto True 50 GB 200 GB rds.mysql.n1.medium.4 40 → 50 GB", "(storage)")

	// A database whose autopilot is off is ready, because its user wants that.
	s.must(t, `kubectl patch rap my-rds --type=merge -p '{"spec":{"mode":"Off"}}'`)
	s.waitFor(t, "kubectl wait --for=condition=Armed=False rap/my-rds --timeout=90s", "condition met")
	s.waitFor(t, `kubectl wait --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=NotEnabled rap/my-rds --timeout=90s`, "condition met")
	s.waitFor(t, "kubectl get rap my-rds -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}'", "True")
}
