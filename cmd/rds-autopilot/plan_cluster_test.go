// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// readers may read the two kinds: one everywhere, one in a namespace. Apply puts the namespace of the test into it.
const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [otc.mcsps.de], resources: [rdss], verbs: [get, list]}
- {apiGroups: [autopilot.otc.mcsps.de], resources: [rdsautopilots], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: everywhere, namespace: here}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: here, namespace: here}]
`

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: []string{
	"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml",
}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestPlanReadsAndWritesNothing runs the command as a person with the right to read.
func TestPlanReadsAndWritesNothing(t *testing.T) {
	t.Parallel()
	// The cloud begins half an hour ago, so that by now it has data.
	var behind atomic.Int64
	behind.Store(int64(40 * time.Minute))
	sim, err := simcloud.Start(simcloud.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }})
	must(t, err)
	t.Cleanup(func() { _ = sim.Close() })
	f := newPlanWorld(t, sim)
	here, there := f.here, f.there
	f.database(here, "fresh", simcloud.Instance{
		Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 42, CPUDemand: .5, MemoryDemandGB: 4},
	})
	f.database(here, "settled", simcloud.Instance{Flavor: "rds.pg.n1.large.4.ha", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 33, CPUDemand: 1.9, MemoryDemandGB: 2}})
	f.rds(there, "other", f.database(here, "twin", simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 40}))
	kubeconfig := f.readers()
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "settled"},
	}}
	raps := f.admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(here)
	if _, err := raps.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	behind.Store(0)
	sim.Step(t.Context())
	sim.ResetRequests()
	before := f.versions()

	planOf := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"plan", "--kubeconfig", kubeconfig["everywhere"], "-n", here, "--cloud-rate", "1000"}, args...), f.env(), &out, &errs); code != exitOK {
			t.Fatalf("%v: exit code %d, %s", args, code, errs.String())
		}
		return out.String()
	}

	t.Run("without an RdsAutopilot, by the defaults of the CRD", func(t *testing.T) {
		text := planOf("fresh")
		for _, want := range []string{
			"\n  There is no RdsAutopilot yet", "\nstorage: nothing (BelowThreshold). Storage stays at 100 GB: 42.0 % used, alarm at 85 %",
			"\n  At 85 %: GrowVolume 100 → 110 (AlarmInForce).", "\ncpu: nothing (BelowThreshold).", ": 25.0 % CPU used, alarm at 90 %",
			"\n  At 90 %: nothing (InstanceBusy).", "\n  rds.mysql.n1.xlarge.4 (4 vCPUs, 16 GB): available\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the plan lacks %q:\n%s", want, text)
			}
		}
	})
	t.Run("--mode is an upper bound", func(t *testing.T) {
		for mode, want := range map[string]string{
			"Auto": "GrowVolume 40 → 50 (AlarmInForce)", "Recommend": "GrowVolume 40 → 50 (Recommend)", "Off": "nothing (NotEnabled)",
		} {
			if text := planOf("settled", "--mode", mode); !strings.Contains(text, "\nstorage: "+want+".") {
				t.Errorf("%s: %s", mode, text)
			}
		}
	})
	t.Run("an instance that is not listed is not allowed", func(t *testing.T) {
		if text := planOf("settled", "--allowed-instances", there+"/*"); !strings.Contains(text, "\nstorage: nothing (NotAllowed).") {
			t.Error(text)
		}
	})
	t.Run("a reader of one namespace gets plans of it", func(t *testing.T) {
		apiserver.NeedReal(t)
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"plan", "--kubeconfig", kubeconfig["here"], "-n", here, "settled"}, f.env(), &out, &errs); code != exitOK || !strings.Contains(out.String(), "Not checked: whether another object manages the instance") {
			t.Errorf("exit code %d, %s%s", code, out.String(), errs.String())
		}
	})
	t.Run("a failure is one line and exit code 1", func(t *testing.T) {
		noCloud := func(key string) string {
			if key == "OS_AUTH_URL" {
				return "http://127.0.0.1:1/v3"
			}
			return f.env()(key)
		}
		for name, tc := range map[string]struct {
			args []string
			env  func(string) string
			want string
		}{
			"no such Rds":      {[]string{"-n", here, "nobody", "--kubeconfig", kubeconfig["everywhere"]}, f.env(), "there is no Rds " + here + "/nobody"},
			"no right to read": {[]string{"-n", there, "other", "--kubeconfig", kubeconfig["here"]}, f.env(), "connect to Kubernetes"},
			"no kubeconfig":    {[]string{"-n", here, "settled", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, f.env(), "--kubeconfig"},
			"no cloud":         {[]string{"-n", here, "settled", "--kubeconfig", kubeconfig["everywhere"]}, noCloud, "connect to the cloud"},
			"no Cloud Eye":     {[]string{"-n", here, "settled", "--kubeconfig", kubeconfig["everywhere"], "--endpoint", "ces=http://127.0.0.1:1"}, f.env(), "read the used space"},
		} {
			if name == "no right to read" && !apiserver.Real() {
				continue // Kubernetes in memory knows no rights
			}
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"plan", "--cloud-rate", "1000"}, tc.args...), tc.env, &out, &errs)
			if code != exitError || out.Len() != 0 || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), tc.want) {
				t.Errorf("%s: exit code %d, %q, %q", name, code, out.String(), errs.String())
			}
		}
	})

	if diff := cmp.Diff(before, f.versions()); diff != "" {
		t.Errorf("plan wrote to Kubernetes:\n%s", diff)
	}
	for _, r := range sim.Requests() {
		if r.Method != http.MethodGet && r.Service != "iam" && r.Operation != "BatchMetricData" {
			t.Errorf("plan sent %s (%s) to the cloud", r.Operation, r.Method)
		}
	}
	if len(sim.Requests()) == 0 {
		t.Error("the cloud saw no request")
	}
}

// readers creates the accounts and returns their kubeconfigs.
func (f *planWorld) readers() map[string]string {
	f.t.Helper()
	dir, ctx := f.t.TempDir(), f.t.Context()
	manifest := filepath.Join(dir, "rbac.yaml")
	must(f.t, os.WriteFile(manifest, []byte(readers), 0o600))
	must(f.t, f.kube.Grant(ctx, f.here, manifest))
	files := map[string]string{}
	for _, name := range []string{"everywhere", "here"} {
		cfg, err := f.kube.ServiceAccountConfig(ctx, f.here, name)
		must(f.t, err)
		files[name] = filepath.Join(dir, name)
		must(f.t, apiserver.WriteKubeconfig(files[name], cfg))
	}
	return files
}

// versions returns the version of everything that plan could have written.
func (f *planWorld) versions() map[string]string {
	f.t.Helper()
	versions := map[string]string{}
	for _, kind := range []schema.GroupVersionResource{
		otcv1.GroupVersion().WithResource(otcv1.Resource), v1alpha1.GroupVersion().WithResource(v1alpha1.Resource),
		{Group: "events.k8s.io", Version: "v1", Resource: "events"}, {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	} {
		list, err := f.admin.Resource(kind).Namespace(f.here).List(f.t.Context(), metav1.ListOptions{})
		must(f.t, err)
		for _, o := range list.Items {
			versions[kind.Resource+" "+o.GetName()] = o.GetResourceVersion()
		}
	}
	return versions
}

// planWorld is a cluster and a cloud from which plan reads.
type planWorld struct {
	t     *testing.T
	kube  apiserver.Kubernetes
	admin dynamic.Interface
	sim   *simcloud.Cloud

	here, there string // namespaces
}

func newPlanWorld(t *testing.T, sim *simcloud.Cloud) *planWorld {
	t.Helper()
	kube := shared.Kubernetes(t)
	admin, err := dynamic.NewForConfig(kube.Config())
	must(t, err)
	return &planWorld{t: t, kube: kube, admin: admin, sim: sim, here: kube.Namespace(t), there: kube.Namespace(t)}
}

// database adds an instance and its Rds.
func (f *planWorld) database(namespace, name string, in simcloud.Instance) simcloud.Instance {
	f.t.Helper()
	in.Name = name
	in, err := f.sim.AddInstance(in)
	must(f.t, err)
	f.rds(namespace, name, in)
	return in
}

// rds creates the Rds of an instance, with status.id as the operator sets it.
func (f *planWorld) rds(namespace, name string, in simcloud.Instance) {
	f.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "otc.mcsps.de/v1alpha1", "kind": "Rds", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor, "volumesize": int64(in.VolumeGB),
			"volumetype": in.VolumeType, "autopilot": true,
		},
		"status": map[string]any{"id": in.ID},
	}}
	rdss := f.admin.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(namespace)
	if _, err := rdss.Create(f.t.Context(), object, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// env returns the environment with the cloud's credentials.
func (f *planWorld) env() func(string) string { return environment(f.sim.Env()...) }
