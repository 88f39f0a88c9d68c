// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
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

	"github.com/mcsps/rds-autopilot/internal/kubetest"
)

const (
	rdsCRD       = "crds/rds.yaml"
	autopilotCRD = "crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"
)

var (
	rdss          = schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "rdss"}
	rdsautopilots = schema.GroupVersionResource{Group: "autopilot.otc.mcsps.de", Version: "v1alpha1", Resource: "rdsautopilots"}
)

// TestRdsIsTheOperatorsPlusAdditions compares with what the operator defines, which testdata keeps.
func TestRdsIsTheOperatorsPlusAdditions(t *testing.T) {
	var original map[string]any
	text, err := os.ReadFile("testdata/rds-original.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &original); err != nil {
		t.Fatal(err)
	}
	objects, err := kubetest.Read(rdsCRD)
	if err != nil {
		t.Fatal(err)
	}
	ours := plain(t, objects[0].Object["spec"])

	added := map[string]bool{}
	for _, fault := range narrower("spec", original, ours, added) {
		t.Error(fault)
	}
	want := []string{
		"spec.versions[0].additionalPrinterColumns",
		"spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.autopilot",
		"spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.datastoreversion.pattern",
		"spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.volumetype.enum",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(added))); diff != "" {
		t.Errorf("additions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("rdss.otc.mcsps.de", objects[0].GetName()); diff != "" {
		t.Error(diff)
	}
}

func TestTheComparisonSeesWhatIsNarrower(t *testing.T) {
	schema := func(more string) any {
		var v any
		if err := yaml.Unmarshal([]byte(`{properties: {p: {type: string`+more+`}}}`), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	cases := map[string]struct {
		original, ours any
		narrower       bool
	}{
		"equal":                        {schema(""), schema(""), false},
		"a description":                {schema(""), schema(", description: d"), false},
		"more values":                  {schema(", enum: [a]"), schema(", enum: [b, a]"), false},
		"more alternatives":            {schema(`, pattern: "^(a|b)$"`), schema(`, pattern: "^(b|c|a)$"`), false},
		"a value less":                 {schema(", enum: [a, b]"), schema(", enum: [a]"), true},
		"an alternative less":          {schema(`, pattern: "^(a|b)$"`), schema(`, pattern: "^(a)$"`), true},
		"another pattern":              {schema(`, pattern: "^a"`), schema(`, pattern: "^b"`), true},
		"a pattern where none was":     {schema(""), schema(`, pattern: "^b"`), true},
		"another default":              {schema(", default: a"), schema(", default: b"), true},
		"a default where none was":     {schema(""), schema(", default: b"), true},
		"no default where one was":     {schema(", default: a"), schema(""), true},
		"a property less":              {schema(""), map[string]any{"properties": map[string]any{}}, true},
		"required where nothing was":   {schema(""), map[string]any{"properties": schema("").(map[string]any)["properties"], "required": []any{"p"}}, true},
		"an added property":            {map[string]any{"properties": map[string]any{}}, schema(""), false},
		"an added property, defaulted": {map[string]any{"properties": map[string]any{}}, schema(", default: a"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if faults := narrower("x", c.original, c.ours, map[string]bool{}); (len(faults) > 0) != c.narrower {
				t.Errorf("faults: %v", faults)
			}
		})
	}
}

// narrower says where ours refuses, lacks or changes something of the original, and collects what it adds.
func narrower(path string, original, ours any, added map[string]bool) []string {
	a, isObject := original.(map[string]any)
	b, alsoObject := ours.(map[string]any)
	if isObject != alsoObject {
		return []string{fmt.Sprintf("%s: %v became %v", path, original, ours)}
	}
	if isObject {
		return narrowerObject(path, a, b, added)
	}
	if list, ok := original.([]any); ok && strings.HasSuffix(path, ".versions") {
		ourList, ok := ours.([]any)
		if !ok || len(list) != len(ourList) {
			return []string{path + ": other versions"}
		}
		var faults []string
		for i := range list {
			faults = append(faults, narrower(fmt.Sprintf("%s[%d]", path, i), list[i], ourList[i], added)...)
		}
		return faults
	}
	if reflect.DeepEqual(original, ours) {
		return nil
	}
	if strings.HasSuffix(path, ".enum") && includes(ours.([]any), original.([]any)) {
		added[path] = true
		return nil
	}
	if strings.HasSuffix(path, ".pattern") && includes(alternatives(ours), alternatives(original)) {
		added[path] = true
		return nil
	}
	return []string{fmt.Sprintf("%s: %v became %v", path, original, ours)}
}

func narrowerObject(path string, original, ours map[string]any, added map[string]bool) []string {
	var faults []string
	for key, was := range original {
		is, ok := ours[key]
		if !ok {
			faults = append(faults, fmt.Sprintf("%s.%s is gone", path, key))
			continue
		}
		faults = append(faults, narrower(path+"."+key, was, is, added)...)
	}
	for key, is := range ours {
		if _, ok := original[key]; ok {
			continue
		}
		property, isObject := is.(map[string]any)
		switch {
		case key == "additionalPrinterColumns": // what people see, and no object is another for it
			added[path+"."+key] = true
		case strings.HasSuffix(path, ".properties") && isObject && property["default"] == nil:
			added[path+"."+key] = true
		case key != "description" || strings.HasSuffix(path, ".properties"):
			faults = append(faults, fmt.Sprintf("%s.%s is new: %v", path, key, is))
		}
	}
	return faults
}

// alternatives of ^(a|b)$; nothing for another pattern.
func alternatives(pattern any) []any {
	inner, isOpen := strings.CutPrefix(pattern.(string), "^(")
	inner, isShut := strings.CutSuffix(inner, ")$")
	if !isOpen || !isShut || strings.ContainsAny(inner, "()[]*+?\\") {
		return nil
	}
	var list []any
	for one := range strings.SplitSeq(inner, "|") {
		list = append(list, one)
	}
	return list
}

// includes says whether all has every one of some, and there is one.
func includes(all, some []any) bool {
	for _, one := range some {
		if !slices.Contains(all, one) {
			return false
		}
	}
	return len(some) > 0
}

func TestRdsAcceptsOldAndNewAndNothingElse(t *testing.T) {
	client := admin(t).Resource(rdss).Namespace(shared.Cluster(t).Namespace(t))
	cases := []struct {
		name, spec, refusal string
	}{
		{"all defaults", `{}`, ""},
		{"the operator's Ha", `{availabilityzone: "eu-de-01,eu-de-02", hamode: Ha, hareplicationmode: semisync}`, ""},
		{"an old SQL Server", `{datastoretype: SQLServer, datastoreversion: "2017 EE"}`, ""},
		{"a new SQL Server", `{datastoretype: SQLServer, datastoreversion: 2022_SE}`, ""},
		{"PostgreSQL 17", `{datastoretype: PostgreSQL, datastoreversion: "17", volumetype: CLOUDSSD}`, ""},
		{"ESSD", `{volumetype: ESSD}`, ""},
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

// specDefaults is the spec that an empty RdsAutopilot gets, without what has no default.
const specDefaults = `{
  mode: Auto,
  storage: {stepGB: 10, maxGB: 4000, thresholdPercent: 90, alarm: {periodSeconds: 1, count: 5, repeatSeconds: 900}},
  flavor: {
    cpu: {enabled: true, thresholdPercent: 90},
    memory: {enabled: true, thresholdPercent: 90},
    alarm: {periodSeconds: 300, count: 3, repeatSeconds: 1800},
    cooldownSeconds: 3600,
    maxChangesPerDay: 2}, apply: Operator}`

func TestRdsAutopilotDefaults(t *testing.T) {
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

func TestRdsAutopilotValidation(t *testing.T) {
	client := admin(t).Resource(rdsautopilots).Namespace(shared.Cluster(t).Namespace(t))
	cases := []struct {
		name, spec, refusal string
	}{
		{"everything of the design", `{mode: Recommend, storage: {stepGB: 50, maxGB: 40}, flavor: {maxVCPUs: 16, maxMemoryGB: 64, window: {days: [Sat, Sun], start: "01:00", end: "05:00", timeZone: Europe/Berlin}}}`, ""},
		{"every mode", `{mode: "Off"}`, ""},
		{"zeros that mean something", `{storage: {alarm: {repeatSeconds: 0}}, flavor: {cpu: {enabled: false}, alarm: {repeatSeconds: 0}, cooldownSeconds: 0}}`, ""},
		{"a window over midnight", `{flavor: {window: {days: [Mon], start: "22:00", end: "02:00"}}}`, ""},
		{"a window of every day", `{flavor: {window: {start: "01:00", end: "05:00"}}}`, ""},
		{"an old name of a zone", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: Asia/Calcutta}}}`, ""},
		{"UTC", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: UTC}}}`, ""},
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
		{"stepGB 0", `{storage: {stepGB: 0}}`, "spec.storage.stepGB"},
		{"maxGB no multiple of 10", `{storage: {maxGB: 3995}}`, "spec.storage.maxGB"},
		{"maxGB 4005", `{storage: {maxGB: 4005}}`, "spec.storage.maxGB"},
		{"maxGB 4010", `{storage: {maxGB: 4010}}`, "spec.storage.maxGB"},
		{"maxGB 30", `{storage: {maxGB: 30}}`, "spec.storage.maxGB"},
		{"threshold 0", `{storage: {thresholdPercent: 0}}`, "spec.storage.thresholdPercent"},
		{"threshold 101", `{flavor: {cpu: {thresholdPercent: 101}}}`, "spec.flavor.cpu.thresholdPercent"},
		{"a threshold as text", `{flavor: {memory: {thresholdPercent: "90"}}}`, "spec.flavor.memory.thresholdPercent"},
		{"count 6", `{storage: {alarm: {count: 6}}}`, "spec.storage.alarm.count"},
		{"count 0", `{flavor: {alarm: {count: 0}}}`, "spec.flavor.alarm.count"},
		{"a period that Cloud Eye lacks", `{storage: {alarm: {periodSeconds: 60}}}`, "spec.storage.alarm.periodSeconds"},
		{"a repetition that Cloud Eye lacks", `{flavor: {alarm: {repeatSeconds: 60}}}`, "spec.flavor.alarm.repeatSeconds"},
		{"maxVCPUs 0", `{flavor: {maxVCPUs: 0}}`, "spec.flavor.maxVCPUs"},
		{"maxMemoryGB 0", `{flavor: {maxMemoryGB: 0}}`, "spec.flavor.maxMemoryGB"},
		{"a negative cooldown", `{flavor: {cooldownSeconds: -1}}`, "spec.flavor.cooldownSeconds"},
		{"11 changes a day", `{flavor: {maxChangesPerDay: 11}}`, "spec.flavor.maxChangesPerDay"},
		{"no change a day", `{flavor: {maxChangesPerDay: 0}}`, "spec.flavor.maxChangesPerDay"},
		{"a window with no day", `{flavor: {window: {days: [], start: "01:00", end: "05:00"}}}`, "spec.flavor.window.days"},
		{"a day twice", `{flavor: {window: {days: [Sat, Sat], start: "01:00", end: "05:00"}}}`, "spec.flavor.window.days"},
		{"an unknown day", `{flavor: {window: {days: [Saturday], start: "01:00", end: "05:00"}}}`, "spec.flavor.window.days"},
		{"a start without zero", `{flavor: {window: {days: [Sat], start: "1:00", end: "05:00"}}}`, "spec.flavor.window.start"},
		{"a start at 24:00", `{flavor: {window: {days: [Sat], start: "24:00", end: "05:00"}}}`, "spec.flavor.window.start"},
		{"no end", `{flavor: {window: {days: [Sat], start: "01:00"}}}`, "spec.flavor.window.end"},
		{"a time zone with a typo", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: Europe/Berln}}}`, "spec.flavor.window.timeZone"},
		{"the time zone of the machine", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: Local}}}`, "spec.flavor.window.timeZone"},
		{"an offset", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: "+02:00"}}}`, "spec.flavor.window.timeZone"},
		{"an offset without a sign", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: "02:00"}}}`, "spec.flavor.window.timeZone"},
		{"an offset without minutes", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: "+2"}}}`, "spec.flavor.window.timeZone"},
		{"a path", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: ../Berlin}}}`, "spec.flavor.window.timeZone"},
		{"an empty time zone", `{flavor: {window: {days: [Sat], start: "01:00", end: "05:00", timeZone: ""}}}`, "spec.flavor.window.timeZone"},
		{"an unknown field", `{storage: {maxGb: 100}}`, "maxGb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := create(t, client, rdsautopilots, "RdsAutopilot", c.spec)
			checkRefusal(t, err, c.refusal)
		})
	}
}

func TestRdsAutopilotStatusIsApartFromItsSpec(t *testing.T) {
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

// checkRefusal wants no error, or an invalid object with the field named.
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

// plain turns what a client has decoded into what encoding/json makes of the same text.
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

// TestATypoOfAnOlderCRDStopsNothing stores a time zone that the schema refuses today, as an older one let it through.
// Were the status not to be written after the upgrade, no alarm of that database could be stored.
func TestATypoOfAnOlderCRDStopsNothing(t *testing.T) {
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
	until := func(refused bool) { // the API server takes a new schema up by and by
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
