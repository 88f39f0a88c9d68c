// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// TestRdsCRDOnlyAddsToTheOperatorsCRD compares with the operator's CRD in testdata. Ours adds columns, descriptions and
// spec.autopilot, and accepts every volumetype and datastoreversion. A stricter schema would break existing databases.
func TestRdsCRDOnlyAddsToTheOperatorsCRD(t *testing.T) {
	text, err := os.ReadFile("testdata/rds-original.yaml")
	must(t, err)
	was, is := &unstructured.Unstructured{Object: map[string]any{"spec": decoded(t, string(text))}}, read(t, rdsCRD)[0]
	if is.GetName() != "rdss.otc.mcsps.de" {
		t.Errorf("its name is %s", is.GetName())
	}
	properties := []any{"spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties"}
	before, after := at(t, was, properties...).(map[string]any), at(t, is, properties...).(map[string]any)
	delete(after, "autopilot")
	for field, keyword := range map[string]string{"volumetype": "enum", "datastoreversion": "pattern"} {
		delete(before[field].(map[string]any), keyword)
	}
	added := cmpopts.IgnoreMapEntries(func(key string, value any) bool {
		_, isText := value.(string) // otherwise it is a property of that name
		return key == "description" && isText || key == "additionalPrinterColumns"
	})
	if diff := cmp.Diff(was.Object["spec"], is.Object["spec"], added); diff != "" {
		t.Errorf("the schema differs (-operator +ours):\n%s", diff)
	}
}

// TestCRDsAcceptValidObjectsAndRefuseOthers has a row for each rule of our schemas. A refusal names the field, and says what is
// allowed if that is not obvious.
func TestCRDsAcceptValidObjectsAndRefuseOthers(t *testing.T) {
	namespace := shared.Cluster(t).Namespace(t)
	const berlin = "spec.flavor.window.timeZone … must be a name of the IANA time zone database, such as Europe/Berlin"
	window := func(fields string) string { return "{flavor: {window: {" + fields + "}}}" }
	for _, c := range []struct {
		kind, name, spec string
		refusal          string // texts of the error, with … between them; empty if the object is valid
	}{
		{"Rds", "a storage type of next year", `{volumetype: GPSSD2}`, ""},
		{"Rds", "a version of next year", `{datastoretype: PostgreSQL, datastoreversion: "18"}`, ""},
		{"Rds", "autopilot on", `{autopilot: true}`, ""},
		{"Rds", "autopilot off", `{autopilot: false}`, ""},
		{"Rds", "autopilot as text", `{autopilot: "true"}`, "spec.autopilot"},
		{"Rds", "an unknown field", `{volumesise: 50}`, "volumesise"},
		{"RdsAutopilot", "no spec", ``, ""},
		{"RdsAutopilot", "every field of storage", `{mode: Recommend, storage: {stepGB: 50, stepPercent: 5, maxGB: 40}}`, ""},
		{"RdsAutopilot", "zeros that mean something",
			`{storage: {alarm: {repeatSeconds: 0}}, flavor: {cpu: {enabled: false}, alarm: {repeatSeconds: 0}, cooldownSeconds: 0}}`, ""},
		{"RdsAutopilot", "limits and a window", `{flavor: {maxVCPUs: 16, maxMemoryGB: 64,
			window: {days: [Sat, Sun], start: "01:00", end: "05:00", timeZone: Europe/Berlin}}}`, ""},
		{"RdsAutopilot", "a window over midnight", window(`days: [Mon], start: "22:00", end: "02:00"`), ""},
		{"RdsAutopilot", "an old name of a zone", window(`start: "01:00", end: "05:00", timeZone: Asia/Calcutta`), ""},
		{"RdsAutopilot", "a zone with a number in its name", window(`start: "01:00", end: "05:00", timeZone: Etc/GMT-2`), ""},
		{"RdsAutopilot", "the cloud without an instance", `{apply: Cloud}`, "spec.instanceID"},
		{"RdsAutopilot", "an instance", `{apply: Cloud, instanceID: 0a1b2c3d4e5f60718293a4b5c6d7e8f9in01}`, ""},
		{"RdsAutopilot", "an instance left to an operator", `{instanceID: 0a1b2c3d4e5f60718293a4b5c6d7e8f9in01}`, "spec.instanceID"},
		{"RdsAutopilot", "an empty instance id", `{apply: Cloud, instanceID: ""}`, "spec.instanceID"},
		{"RdsAutopilot", "an instance id that is a path", `{apply: Cloud, instanceID: ../../x}`, "spec.instanceID"},
		{"RdsAutopilot", "another way to apply", `{apply: Terraform}`, "spec.apply"},
		{"RdsAutopilot", "Off without quotes, which YAML reads as false", `{mode: Off}`, `spec.mode … must be of type string … "Off"`},
		{"RdsAutopilot", "an unknown mode", `{mode: Automatic}`, `spec.mode … supported values: "Auto", "Recommend", "Off"`},
		{"RdsAutopilot", "stepGB 15", `{storage: {stepGB: 15}}`, "spec.storage.stepGB … multiple of 10"},
		{"RdsAutopilot", "stepPercent 0", `{storage: {stepPercent: 0}}`, "spec.storage.stepPercent"},
		{"RdsAutopilot", "stepPercent 51", `{storage: {stepPercent: 51}}`, "spec.storage.stepPercent"},
		{"RdsAutopilot", "maxGB 3995", `{storage: {maxGB: 3995}}`, "spec.storage.maxGB … multiple of 10"},
		{"RdsAutopilot", "maxGB 4010", `{storage: {maxGB: 4010}}`, "spec.storage.maxGB"},
		{"RdsAutopilot", "maxGB 30", `{storage: {maxGB: 30}}`, "spec.storage.maxGB … greater than or equal to 40"},
		{"RdsAutopilot", "threshold 0", `{storage: {thresholdPercent: 0}}`, "spec.storage.thresholdPercent"},
		{"RdsAutopilot", "threshold 101", `{flavor: {cpu: {thresholdPercent: 101}}}`, "spec.flavor.cpu.thresholdPercent"},
		{"RdsAutopilot", "a threshold as text", `{flavor: {memory: {thresholdPercent: "90"}}}`, "spec.flavor.memory.thresholdPercent … integer"},
		{"RdsAutopilot", "count 6", `{storage: {alarm: {count: 6}}}`, "spec.storage.alarm.count"},
		{"RdsAutopilot", "a period that Cloud Eye lacks", `{storage: {alarm: {periodSeconds: 60}}}`,
			`spec.storage.alarm.periodSeconds … supported values: "1", "300"`},
		{"RdsAutopilot", "a repetition that Cloud Eye lacks", `{flavor: {alarm: {repeatSeconds: 60}}}`, "spec.flavor.alarm.repeatSeconds"},
		{"RdsAutopilot", "maxVCPUs 0", `{flavor: {maxVCPUs: 0}}`, "spec.flavor.maxVCPUs"},
		{"RdsAutopilot", "maxMemoryGB 0", `{flavor: {maxMemoryGB: 0}}`, "spec.flavor.maxMemoryGB"},
		{"RdsAutopilot", "a negative cooldown", `{flavor: {cooldownSeconds: -1}}`, "spec.flavor.cooldownSeconds"},
		{"RdsAutopilot", "11 changes a day", `{flavor: {maxChangesPerDay: 11}}`, "spec.flavor.maxChangesPerDay"},
		{"RdsAutopilot", "no change a day", `{flavor: {maxChangesPerDay: 0}}`, "spec.flavor.maxChangesPerDay"},
		{"RdsAutopilot", "no day", window(`days: [], start: "01:00", end: "05:00"`), "spec.flavor.window.days"},
		{"RdsAutopilot", "a day twice", window(`days: [Sat, Sat], start: "01:00", end: "05:00"`), "spec.flavor.window.days"},
		{"RdsAutopilot", "a start without zero", window(`start: "1:00", end: "05:00"`),
			`spec.flavor.window.start … must be HH:MM in quotes, such as "05:00"`},
		{"RdsAutopilot", "an end at 24:00", window(`start: "01:00", end: "24:00"`), "spec.flavor.window.end"},
		{"RdsAutopilot", "no end", window(`days: [Sat], start: "01:00"`), "spec.flavor.window.end"},
		{"RdsAutopilot", "a time zone with a typo", window(`start: "01:00", end: "05:00", timeZone: Europe/Berln`), berlin},
		{"RdsAutopilot", "the time zone of the machine", window(`start: "01:00", end: "05:00", timeZone: Local`), berlin},
		{"RdsAutopilot", "an offset", window(`start: "01:00", end: "05:00", timeZone: "+02:00"`), berlin},
		{"RdsAutopilot", "a path", window(`start: "01:00", end: "05:00", timeZone: ../Berlin`), berlin},
		{"RdsAutopilot", "an unknown field", `{storage: {maxGb: 100}}`, `unknown field "spec.storage.maxGb"`},
	} {
		t.Run(c.kind+" "+c.name, func(t *testing.T) {
			_, err := dryRun(t, admin(t), namespace, newObject(t, c.kind, c.spec))
			checkRefusal(t, err, c.refusal)
		})
	}
}

// checkRefusal fails the test unless err is nil for an empty refusal, or contains its texts.
func checkRefusal(t *testing.T, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refusal != "" && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
		t.Errorf("got %v, want a refusal", err)
	case refusal != "":
		for text := range strings.SplitSeq(refusal, " … ") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("got %v, want %s", err, text)
			}
		}
	}
}

// Tools that wait for health, such as kstatus, count a resource without conditions as healthy.
func TestEmptyRdsAutopilotGetsDefaultsAndIsReadyUnknown(t *testing.T) {
	for _, spec := range []string{``, `{}`, `{storage: {alarm: {}}, flavor: {cpu: {}}}`} {
		got, err := dryRun(t, admin(t), "default", newObject(t, "RdsAutopilot", spec))
		must(t, err)
		var defaulted v1alpha1.RdsAutopilot
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &defaulted))
		if diff := cmp.Diff(autopilot.DefaultSpec(), defaulted.Spec); diff != "" {
			t.Errorf("%s: spec (-code +server):\n%s", spec, diff)
		}
		if c := at(t, got, "status", "conditions", 0).(map[string]any); c["type"] != "Ready" || c["status"] != "Unknown" {
			t.Errorf("%s: condition %v", spec, c)
		}
	}
}

// TestStatusIsWrittenWhenAnOlderCRDAcceptedATypo stores a time zone that an older schema accepted and today's refuses. If
// nobody could write the status after the upgrade, the service could store no alarm of that database.
func TestStatusIsWrittenWhenAnOlderCRDAcceptedATypo(t *testing.T) {
	definition := read(t, autopilotCRD)[0]
	delete(at(t, definition, "spec", "versions", 0, "schema", "openAPIV3Schema").(map[string]any), "x-kubernetes-validations")
	text, err := yaml.Marshal(definition.Object)
	must(t, err)
	older := filepath.Join(t.TempDir(), "older.yaml")
	must(t, os.WriteFile(older, text, 0o600))
	cluster := apiserver.Own(t, apiserver.Options{CRDs: []string{older}})
	objects, err := dynamic.NewForConfig(cluster.Config())
	must(t, err)
	client := objects.Resource(rdsautopilots).Namespace("default")
	typo := newObject(t, "RdsAutopilot", `{flavor: {window: {start: "01:00", end: "05:00", timeZone: Europe/Berln}}}`)
	if _, err := client.Create(t.Context(), typo, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Apply(t.Context(), apiserver.ApplyOptions{}, autopilotCRD); err != nil {
		t.Fatal(err)
	}
	another := typo.DeepCopy()
	another.SetName("another")
	// The API server applies a new schema with a delay.
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
		_, err := dryRun(t, objects, "default", another)
		return err != nil, nil
	})
	if err != nil {
		t.Fatalf("today's schema accepts the typo: %v", err)
	}
	for _, change := range []struct{ patch, subresource, refusal string }{
		{`{"status":{"observedGeneration":7}}`, "status", ""},
		{`{"spec":{"storage":{"maxGB":500}}}`, "", ""},
		{`{"spec":{"flavor":{"window":{"timeZone":"Europe/Berlinn"}}}}`, "", "spec.flavor.window.timeZone"},
		{`{"spec":{"flavor":{"window":{"timeZone":"Europe/Berlin"}}}}`, "", ""},
	} {
		_, err := client.Patch(t.Context(), "x", types.MergePatchType, []byte(change.patch), metav1.PatchOptions{}, change.subresource)
		checkRefusal(t, err, change.refusal)
	}
}
