// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"
)

const (
	rdsCRD       = "crds/rds.yaml"
	autopilotCRD = "crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"
)

var (
	rdss          = schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "rdss"}
	rdsautopilots = schema.GroupVersionResource{Group: "autopilot.otc.mcsps.de", Version: "v1alpha1", Resource: "rdsautopilots"}
)

// TestRdsCRDOnlyAddsToTheOperatorsCRD compares with the operator's CRD in testdata. Ours adds columns, descriptions,
// spec.autopilot, and values of volumetype and datastoreversion. A stricter or different schema would break existing databases.
func TestRdsCRDOnlyAddsToTheOperatorsCRD(t *testing.T) {
	text, err := os.ReadFile("testdata/rds-original.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var original map[string]any
	if err := yaml.UnmarshalStrict(text, &original); err != nil {
		t.Fatal(err)
	}
	object := read(t, rdsCRD)[0]
	if object.GetName() != "rdss.otc.mcsps.de" {
		t.Errorf("its name is %s", object.GetName())
	}
	was := &unstructured.Unstructured{Object: map[string]any{"spec": original}}
	is := &unstructured.Unstructured{Object: map[string]any{"spec": plain(t, object.Object["spec"])}}
	removeDescriptions(was.Object)
	removeDescriptions(is.Object)

	delete(at(t, is, "spec", "versions", 0).(map[string]any), "additionalPrinterColumns")
	properties := []any{"spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties"}
	delete(at(t, is, properties...).(map[string]any), "autopilot")
	for field, keyword := range map[string]string{"volumetype": "enum", "datastoreversion": "pattern"} {
		before := at(t, was, append(slices.Clone(properties), field)...).(map[string]any)
		after := at(t, is, append(slices.Clone(properties), field)...).(map[string]any)
		accepted := alternatives(t, after[keyword])
		for _, value := range alternatives(t, before[keyword]) {
			if !slices.Contains(accepted, value) {
				t.Errorf("%s no longer accepts %v", field, value)
			}
		}
		after[keyword] = before[keyword]
	}
	if diff := cmp.Diff(was.Object, is.Object); diff != "" {
		t.Errorf("the schema differs (-operator +ours):\n%s", diff)
	}
}

func removeDescriptions(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, isText := v["description"].(string); isText { // not a property of that name
			delete(v, "description")
		}
		for _, inner := range v {
			removeDescriptions(inner)
		}
	case []any:
		for _, inner := range v {
			removeDescriptions(inner)
		}
	}
}

// alternatives returns the values of an enum, or those of a pattern ^(a|b)$.
func alternatives(t *testing.T, keyword any) []any {
	t.Helper()
	if values, isEnum := keyword.([]any); isEnum {
		return values
	}
	pattern := keyword.(string)
	if !regexp.MustCompile(`^\^\([^()\[\]*+?\\]+\)\$$`).MatchString(pattern) {
		t.Fatalf("%s is not a list of alternatives", pattern)
	}
	var values []any
	for value := range strings.SplitSeq(pattern[2:len(pattern)-2], "|") {
		values = append(values, value)
	}
	return values
}

func TestRdsCRDAcceptsOldAndNewValuesAndRefusesOthers(t *testing.T) {
	client := admin(t).Resource(rdss).Namespace(shared.Cluster(t).Namespace(t))
	cases := []struct {
		name, spec, refusal string
	}{
		{"all defaults", `{}`, ""},
		{"the operator's Ha", `{availabilityzone: "eu-de-01,eu-de-02", hamode: Ha, hareplicationmode: semisync}`, ""},
		{"an old SQL Server", `{datastoretype: SQLServer, datastoreversion: "2017 EE"}`, ""},
		{"a new SQL Server", `{datastoretype: SQLServer, datastoreversion: 2022_SE}`, ""},
		{"users and databases", `{databases: [a], users: [{name: a, host: "%", password: b, privileges: [GRANT ALL ON a.* TO 'a'@'%']}]}`, ""},
		{"autopilot on", `{autopilot: true}`, ""},
		{"autopilot off", `{autopilot: false}`, ""},
		{"autopilot as text", `{autopilot: "true"}`, "spec.autopilot"},
		{"a smaller volume than there is", `{volumesize: 30}`, "spec.volumesize"},
		{"a larger volume than there is", `{volumesize: 4010}`, "spec.volumesize"},
		{"another volume type", `{volumetype: SSD}`, "spec.volumetype"},
		{"PostgreSQL 18", `{datastoreversion: "18"}`, "spec.datastoreversion"},
		{"a short password", `{password: short}`, "spec.password"},
		{"another engine", `{datastoretype: Oracle}`, "spec.datastoretype"},
		{"an unknown field", `{volumesise: 50}`, "volumesise"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := create(t, client, rdss, "Rds", c.spec)
			checkRefusal(t, err, c.refusal)
			if err != nil {
				return
			}
			autopilot, present, err := unstructured.NestedBool(got.Object, "spec", "autopilot")
			if err != nil || present != strings.Contains(c.spec, "autopilot") || autopilot != strings.Contains(c.spec, "true") {
				t.Errorf("spec.autopilot is %v, present %v, %v", autopilot, present, err)
			}
		})
	}

	t.Run("the status is written by plain update", func(t *testing.T) {
		object := newObject(t, rdss, "Rds", `{}`)
		made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(made.Object, "ACTIVE", "status", "status"); err != nil {
			t.Fatal(err)
		}
		updated, err := client.Update(t.Context(), made, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(updated.Object, "status", "status"); got != "ACTIVE" {
			t.Errorf("status.status is %q", got)
		}
	})
}

// specDefaults is the spec of an empty RdsAutopilot. It contains every field with a default.
const specDefaults = `{
  mode: Auto,
  storage: {stepGB: 10, thresholdPercent: 90, alarm: {periodSeconds: 1, count: 5, repeatSeconds: 900}},
  flavor: {
    cpu: {enabled: true, thresholdPercent: 90},
    memory: {enabled: true, thresholdPercent: 90},
    alarm: {periodSeconds: 300, count: 3, repeatSeconds: 1800},
    cooldownSeconds: 3600,
    maxChangesPerDay: 2}, apply: Operator}`

func TestEmptyRdsAutopilotGetsTheDefaults(t *testing.T) {
	client := admin(t).Resource(rdsautopilots).Namespace(shared.Cluster(t).Namespace(t))
	var want map[string]any
	if err := yaml.Unmarshal([]byte(specDefaults), &want); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]string{
		"an empty spec": `{}`, "no spec": ``, "half a spec": `{storage: {alarm: {}}, flavor: {cpu: {}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := create(t, client, rdsautopilots, "RdsAutopilot", spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, plain(t, got.Object["spec"])); diff != "" {
				t.Errorf("spec (-design +server):\n%s", diff)
			}
		})
	}
}

func TestRdsAutopilotCRDRefusesInvalidPolicies(t *testing.T) {
	client := admin(t).Resource(rdsautopilots).Namespace(shared.Cluster(t).Namespace(t))
	cases := []struct {
		name, spec, refusal string
	}{
		{"everything of the design", `{mode: Recommend, storage: {stepGB: 50, stepPercent: 5, maxGB: 40}, flavor: {maxVCPUs: 16, maxMemoryGB: 64, window: {days: [Sat, Sun], start: "01:00", end: "05:00", timeZone: Europe/Berlin}}}`, ""},
		{"zeros that mean something", `{storage: {alarm: {repeatSeconds: 0}}, flavor: {cpu: {enabled: false}, alarm: {repeatSeconds: 0}, cooldownSeconds: 0}}`, ""},
		{"a window over midnight", `{flavor: {window: {days: [Mon], start: "22:00", end: "02:00"}}}`, ""},
		{"an old name of a zone", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: Asia/Calcutta}}}`, ""},
		{"a zone that is east of UTC by name", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: Etc/GMT-2}}}`, ""},
		{"both ways to apply", `{apply: Cloud}`, ""},
		{"an instance without an Rds", `{apply: Cloud, instanceID: 0a1b2c3d4e5f60718293a4b5c6d7e8f9in01}`, ""},
		{"an instance without an Rds, left to an operator", `{instanceID: 0a1b2c3d4e5f60718293a4b5c6d7e8f9in01}`, "spec.instanceID"},
		{"an empty instance id", `{apply: Cloud, instanceID: ""}`, "spec.instanceID"},
		{"an instance id that is a path", `{apply: Cloud, instanceID: ../../x}`, "spec.instanceID"},
		{"another way to apply", `{apply: Terraform}`, "spec.apply"},
		{"Off without quotes, which YAML takes for false", `{mode: Off}`, "spec.mode"},
		{"an unknown mode", `{mode: Automatic}`, "spec.mode"},
		{"stepGB no multiple of 10", `{storage: {stepGB: 15}}`, "spec.storage.stepGB"},
		{"stepPercent 0", `{storage: {stepPercent: 0}}`, "spec.storage.stepPercent"},
		{"stepPercent 51", `{storage: {stepPercent: 51}}`, "spec.storage.stepPercent"},
		{"maxGB no multiple of 10", `{storage: {maxGB: 3995}}`, "spec.storage.maxGB"},
		{"maxGB 4010", `{storage: {maxGB: 4010}}`, "spec.storage.maxGB"},
		{"maxGB 30", `{storage: {maxGB: 30}}`, "spec.storage.maxGB"},
		{"threshold 0", `{storage: {thresholdPercent: 0}}`, "spec.storage.thresholdPercent"},
		{"threshold 101", `{flavor: {cpu: {thresholdPercent: 101}}}`, "spec.flavor.cpu.thresholdPercent"},
		{"a threshold as text", `{flavor: {memory: {thresholdPercent: "90"}}}`, "spec.flavor.memory.thresholdPercent"},
		{"count 6", `{storage: {alarm: {count: 6}}}`, "spec.storage.alarm.count"},
		{"a period that Cloud Eye lacks", `{storage: {alarm: {periodSeconds: 60}}}`, "spec.storage.alarm.periodSeconds"},
		{"a repetition that Cloud Eye lacks", `{flavor: {alarm: {repeatSeconds: 60}}}`, "spec.flavor.alarm.repeatSeconds"},
		{"maxVCPUs 0", `{flavor: {maxVCPUs: 0}}`, "spec.flavor.maxVCPUs"},
		{"maxMemoryGB 0", `{flavor: {maxMemoryGB: 0}}`, "spec.flavor.maxMemoryGB"},
		{"a negative cooldown", `{flavor: {cooldownSeconds: -1}}`, "spec.flavor.cooldownSeconds"},
		{"11 changes a day", `{flavor: {maxChangesPerDay: 11}}`, "spec.flavor.maxChangesPerDay"},
		{"no change a day", `{flavor: {maxChangesPerDay: 0}}`, "spec.flavor.maxChangesPerDay"},
		{"a window with no day", `{flavor: {window: {days: [], start: "01:00", end: "05:00"}}}`, "spec.flavor.window.days"},
		{"a day twice", `{flavor: {window: {days: [Sat, Sat], start: "01:00", end: "05:00"}}}`, "spec.flavor.window.days"},
		{"a start without zero", `{flavor: {window: {days: [Sat], start: "1:00", end: "05:00"}}}`, "spec.flavor.window.start"},
		{"a start at 24:00", `{flavor: {window: {days: [Sat], start: "24:00", end: "05:00"}}}`, "spec.flavor.window.start"},
		{"no end", `{flavor: {window: {days: [Sat], start: "01:00"}}}`, "spec.flavor.window.end"},
		{"a time zone with a typo", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: Europe/Berln}}}`, "spec.flavor.window.timeZone"},
		{"the time zone of the machine", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: Local}}}`, "spec.flavor.window.timeZone"},
		{"an offset", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: "+02:00"}}}`, "spec.flavor.window.timeZone"},
		{"a path", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: ../Berlin}}}`, "spec.flavor.window.timeZone"},
		{"an unknown field", `{storage: {maxGb: 100}}`, "maxGb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := create(t, client, rdsautopilots, "RdsAutopilot", c.spec)
			checkRefusal(t, err, c.refusal)
		})
	}
}

func TestRdsAutopilotStatusAndSpecAreWrittenSeparately(t *testing.T) {
	client := admin(t).Resource(rdsautopilots).Namespace(shared.Cluster(t).Namespace(t))
	if _, err := client.Create(t.Context(), newObject(t, rdsautopilots, "RdsAutopilot", `{}`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	both := []byte(`{"spec":{"mode":"Off"},"status":{"observedGeneration":7}}`)
	got, err := client.Patch(t.Context(), "x", "application/merge-patch+json", both, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	mode, _, _ := unstructured.NestedString(got.Object, "spec", "mode")
	generation, _, _ := unstructured.NestedInt64(got.Object, "status", "observedGeneration")
	if mode != "Auto" || generation != 7 {
		t.Errorf("through status: mode %s, observedGeneration %d", mode, generation)
	}
	got, err = client.Patch(t.Context(), "x", "application/merge-patch+json", []byte(`{"status":{"observedGeneration":8}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if generation, _, _ := unstructured.NestedInt64(got.Object, "status", "observedGeneration"); generation != 7 {
		t.Errorf("through the object itself the status became %d", generation)
	}
}

// checkRefusal reports an error unless err is nil for an empty field, or a refusal that names the field.
func checkRefusal(t *testing.T, err error, field string) {
	t.Helper()
	switch {
	case field == "" && err != nil:
		t.Errorf("refused: %v", err)
	case field != "" && err == nil:
		t.Error("accepted")
	case field != "" && (!apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), field)):
		t.Errorf("got %v, want a refusal of %s", err, field)
	}
}

// plain returns a decoded value as encoding/json decodes the same text.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStatusIsWrittenWhenAnOlderCRDAcceptedATypo stores a time zone that an older schema accepted and today's refuses. If the
// status could not be written after the upgrade, no alarm of that database could be stored.
func TestStatusIsWrittenWhenAnOlderCRDAcceptedATypo(t *testing.T) {
	definitions := admin(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	client := admin(t).Resource(rdsautopilots).Namespace(shared.Cluster(t).Namespace(t))
	today, err := definitions.Get(t.Context(), "rdsautopilots.autopilot.otc.mcsps.de", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const typo = `{flavor: {window: {start: "01:00", end: "05:00", timeZone: Europe/Berln}}}`
	store := func(spec any) {
		t.Helper()
		stored, err := definitions.Get(context.Background(), today.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stored.Object["spec"] = spec
		if _, err := definitions.Update(context.Background(), stored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until := func(refused bool) { // the API server applies a new schema with a delay
		t.Helper()
		err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			_, err := create(t, client, rdsautopilots, "RdsAutopilot", typo)
			return (err != nil) == refused, nil
		})
		if err != nil {
			t.Fatalf("refused is never %v: %v", refused, err)
		}
	}
	older := today.DeepCopy()
	delete(at(t, older, "spec", "versions", 0, "schema", "openAPIV3Schema").(map[string]any), "x-kubernetes-validations")
	store(older.Object["spec"])
	defer until(true)
	defer store(today.Object["spec"])
	until(false)
	if _, err := client.Create(t.Context(), newObject(t, rdsautopilots, "RdsAutopilot", typo), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	store(today.Object["spec"])
	until(true)
	for _, change := range []struct {
		patch, subresource, refusal string
	}{
		{`{"status":{"observedGeneration":7}}`, "status", ""},
		{`{"spec":{"storage":{"maxGB":500}}}`, "", ""},
		{`{"spec":{"flavor":{"window":{"timeZone":"Europe/Berlinn"}}}}`, "", "spec.flavor.window.timeZone"},
		{`{"spec":{"flavor":{"window":null}}}`, "", ""},
		{`{"spec":{"flavor":{"window":{"start":"01:00","end":"05:00","timeZone":"Local"}}}}`, "", "spec.flavor.window.timeZone"},
		{`{"spec":{"flavor":{"window":{"start":"01:00","end":"05:00","timeZone":"Europe/Berlin"}}}}`, "", ""},
	} {
		_, err := client.Patch(t.Context(), "x", "application/merge-patch+json", []byte(change.patch), metav1.PatchOptions{}, change.subresource)
		checkRefusal(t, err, change.refusal)
	}
}
