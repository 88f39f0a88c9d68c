// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"strings"
	"testing"
)

const policy = `
apiVersion: autopilot.otc.mcsps.de/v1alpha1
kind: RdsAutopilot
metadata:
  name: my-rds
spec:
`

func TestKubectl(t *testing.T) {
	s := newShell(t)
	s.must(t, "kubectl create namespace shop && kubectl config set-context --current --namespace=shop")

	t.Run("typical mistakes name field and remedy", func(t *testing.T) {
		for _, test := range []struct {
			name, spec string
			want       []string
		}{
			{"an unknown field", "  storage: {maxGb: 100}", []string{`unknown field "spec.storage.maxGb"`}},
			{"a negative cap", "  storage: {maxGB: -10}", []string{"spec.storage.maxGB: Invalid value: -10", "greater than or equal to 40"}},
			{"a cap that is no multiple of 10", "  storage: {maxGB: 55}", []string{"spec.storage.maxGB", "multiple of 10"}},
			{"Off without quotes", "  mode: Off", []string{"spec.mode", "must be of type string", `"Off"`}},
			{"a mode that does not exist", "  mode: Automatic", []string{"spec.mode", `supported values: "Auto", "Recommend", "Off"`}},
			{"a wrong time zone", `  flavor: {window: {start: "01:00", end: "05:00", timeZone: Europe/Berln}}`,
				[]string{"spec.flavor.window.timeZone", "must be a name of the IANA time zone database, such as Europe/Berlin"}},
			{"an offset for a time zone", `  flavor: {window: {start: "01:00", end: "05:00", timeZone: "+02:00"}}`,
				[]string{"spec.flavor.window.timeZone", "must be a name of the IANA time zone database, such as Europe/Berlin"}},
			{"an hour without its zero", `  flavor: {window: {start: "1:00", end: "05:00"}}`, []string{"spec.flavor.window.start", `must be HH:MM in quotes, such as "05:00"`}},
			{"a period that Cloud Eye lacks", "  storage: {alarm: {periodSeconds: 60}}", []string{"spec.storage.alarm.periodSeconds", `supported values: "1", "300"`}},
			{"text for a number", `  storage: {maxGB: "100"}`, []string{"spec.storage.maxGB", "must be of type integer"}},
		} {
			out, err := s.sh(t.Context(), "kubectl apply -f - <<'END'"+policy+test.spec+"\nEND")
			if err == nil {
				t.Errorf("%s: accepted", test.name)
			}
			for _, text := range test.want {
				if !strings.Contains(out, text) {
					t.Errorf("%s: no %q in\n%s", test.name, text, out)
				}
			}
		}
	})

	s.must(t, "kubectl apply -f - <<'END'"+policy+"  mode: Recommend\nEND")
	s.must(t, "kubectl apply -f deploy/examples/rds.yaml")
	s.says(t, "kubectl wait --for=condition=Armed rap/my-rds --timeout=90s", "condition met")
	s.says(t, "kubectl wait --for=condition=Ready rap/my-rds --timeout=90s", "condition met")
	s.says(t, "kubectl get rap", "NAME MODE ARMED VOLUME MAX FLAVOR LAST CHANGE LAST DECISION AGE", "my-rds Recommend True 40 GB 200 GB rds.mysql.n1.medium.4 Recommend (storage)")
	s.says(t, "kubectl get rap -o wide", "LAST DECISION AGE USED READY REASON", "True AlarmsInPlace")
	s.says(t, "kubectl get rds", "NAME ENGINE VERSION VOLUME FLAVOR STATUS AGE", "my-rds MySQL 8.0 40 rds.mysql.n1.medium.4 ACTIVE")
	s.says(t, "kubectl explain rap.spec.mode", `Default: Auto.`, `in quotes`)
	s.says(t, "kubectl explain rap.spec.storage.maxGB", "40 to 4000", "Default: four times the volume")
	s.says(t, "kubectl explain rap.spec.storage.alarm", "periodSeconds <integer>", "enum: 1, 300, 1200, 3600, ....", "Default: 900.")
	s.says(t, "kubectl explain rap.status.summary", "40 → 50 GB")
	s.says(t, "kubectl describe rap my-rds", "Type: Ready", "Reason: AlarmsInPlace", "Armed", "Mode: Recommend")

	s.must(t, `kubectl patch rap my-rds --type=merge -p '{"spec":{"mode":"Auto"}}'`)
	s.says(t, "kubectl get rap", "my-rds Auto True 50 GB 200 GB rds.mysql.n1.medium.4 40 → 50 GB", "(storage)")

	// What is off is as its user wants it.
	s.must(t, `kubectl patch rap my-rds --type=merge -p '{"spec":{"mode":"Off"}}'`)
	s.says(t, "kubectl wait --for=condition=Armed=False rap/my-rds --timeout=90s", "condition met")
	s.says(t, `kubectl wait --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=NotEnabled rap/my-rds --timeout=90s`, "condition met")
	s.says(t, "kubectl get rap my-rds -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}'", "True")
}
