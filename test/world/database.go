// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// Database describes a database that AddDatabase creates: an instance in the cloud and its Rds. Engine and mode follow from the
// flavor.
type Database struct {
	Namespace string   // the world's if empty; created if it does not exist
	Name      string   // unique in the cloud as well: the operator finds the instance by it
	Flavor    string   // code with the suffix of its mode: .ha for Ha
	Zones     []string // eu-de-01 if empty, for Ha with eu-de-02
	VolumeGB  int      // 40 if zero
	Workload  simcloud.Workload
	// Autopilot sets spec.autopilot to true; false leaves it out.
	Autopilot bool
	// NoRds leaves out the Rds, as for an instance that was created with Terraform or by hand.
	NoRds bool
}

// DB is a database that exists.
type DB struct {
	Namespace, Name string
	ID              string // of the instance
	world           *World
}

// AddDatabase creates the instance and the Rds. The operator finds both later.
func (w *World) AddDatabase(ctx context.Context, d Database) (*DB, error) {
	if d.Namespace == "" {
		d.Namespace = w.Namespace
	}
	if only := w.watched(); only != "" && d.Namespace != only {
		return nil, fmt.Errorf("add database %s: on a cluster that others use, this world has the namespace %s alone", d.Name, only)
	}
	if d.VolumeGB == 0 {
		d.VolumeGB = 40
	}
	in := simcloud.Instance{Name: d.Name, Flavor: d.Flavor, VolumeGB: d.VolumeGB, Workload: d.Workload}
	for i, zone := range d.Zones {
		in.Nodes = append(in.Nodes, simcloud.Node{Role: []string{"master", "slave"}[min(i, 1)], Zone: zone})
	}
	made, err := w.Cloud.AddInstance(in)
	if err != nil {
		return nil, fmt.Errorf("add database %s: %w", d.Name, err)
	}
	err = w.makeNamespace(ctx, d.Namespace)
	if err == nil && !d.NoRds {
		err = w.createRds(ctx, d, made)
	}
	if err != nil {
		return nil, fmt.Errorf("add database %s: %w", d.Name, err)
	}
	return &DB{d.Namespace, d.Name, made.ID, w}, nil
}

func (w *World) makeNamespace(ctx context.Context, name string) error {
	namespaces := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	if _, err := namespaces.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	return nil
}

// createRds creates an Rds as a person would. The API server adds the defaults.
func (w *World) createRds(ctx context.Context, d Database, in simcloud.Instance) error {
	var zones []string
	for _, n := range in.Nodes {
		zones = append(zones, n.Zone)
	}
	spec := map[string]any{
		"datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor,
		"volumetype": in.VolumeType, "volumesize": int64(in.VolumeGB), "availabilityzone": strings.Join(zones, ","),
		"password": "Sandbox-only-1",
	}
	switch in.Engine {
	case "PostgreSQL":
		spec["port"] = "5432"
	case "SQLServer":
		spec["port"] = "1433"
	}
	if in.Type == "Ha" {
		spec["hamode"], spec["hareplicationmode"] = "Ha", "async"
	}
	if d.Autopilot {
		spec["autopilot"] = true
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind, "metadata": map[string]any{"name": d.Name}, "spec": spec,
	}}
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if _, err := w.rdss(d.Namespace).Create(ctx, object, options); err != nil {
		return fmt.Errorf("create Rds: %w", err)
	}
	return nil
}

func (w *World) rdss(namespace string) dynamic.ResourceInterface {
	return w.client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(namespace)
}

func (w *World) autopilots(namespace string) dynamic.ResourceInterface {
	return w.client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(namespace)
}

// Instance returns the present state of the instance in the cloud. It is the zero value if the instance is gone.
func (d *DB) Instance() simcloud.Instance {
	in, _ := d.world.Cloud.Instance(d.ID)
	return in
}

// SetWorkload sets the load of the instance.
func (d *DB) SetWorkload(load simcloud.Workload) error { return d.world.Cloud.SetWorkload(d.ID, load) }

// Rule returns Cloud Eye's rule for one metric of the instance. It returns false if there is none.
func (d *DB) Rule(metric v1alpha1.Metric) (simcloud.Rule, bool) {
	rules := d.world.Cloud.Rules()
	i := slices.IndexFunc(rules, func(r simcloud.Rule) bool {
		return strings.HasSuffix(r.Name, "_"+string(metric)) && slices.ContainsFunc(r.Metric.Dimensions, func(dim simcloud.Dimension) bool {
			return dim.Value == d.ID
		})
	})
	if i < 0 {
		return simcloud.Rule{}, false
	}
	return rules[i], true
}

// Rds reads the Rds.
func (d *DB) Rds(ctx context.Context) (*otcv1.Rds, error) {
	return get[otcv1.Rds](ctx, d.world.rdss(d.Namespace), d.Name)
}

// Autopilot reads the RdsAutopilot.
func (d *DB) Autopilot(ctx context.Context) (*v1alpha1.RdsAutopilot, error) {
	return get[v1alpha1.RdsAutopilot](ctx, d.world.autopilots(d.Namespace), d.Name)
}

func get[T any](ctx context.Context, in dynamic.ResourceInterface, name string) (*T, error) {
	u, err := in.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", name, err)
	}
	return typed[T](u)
}

// WaitRds returns the first version of the Rds that fulfils the condition. what describes the condition. WaitRds returns an error at
// the deadline of ctx, or after ten minutes if ctx has none.
func (d *DB) WaitRds(ctx context.Context, what string, condition func(*otcv1.Rds) bool) (*otcv1.Rds, error) {
	return until(ctx, d.world.rdss(d.Namespace), d.Name, d.Name+": "+what, condition)
}

// WaitAutopilot is WaitRds for the RdsAutopilot, which need not exist yet.
func (d *DB) WaitAutopilot(ctx context.Context, what string, condition func(*v1alpha1.RdsAutopilot) bool) (*v1alpha1.RdsAutopilot, error) {
	return until(ctx, d.world.autopilots(d.Namespace), d.Name, d.Name+": "+what, condition)
}

// WatchRds calls seen with every version of the Rds until the context ends.
func (d *DB) WatchRds(ctx context.Context, seen func(*otcv1.Rds)) {
	watchAll(ctx, d.world.rdss(d.Namespace), d.Name, seen)
}

// WatchAutopilot is WatchRds for the RdsAutopilot, which need not exist yet.
func (d *DB) WatchAutopilot(ctx context.Context, seen func(*v1alpha1.RdsAutopilot)) {
	watchAll(ctx, d.world.autopilots(d.Namespace), d.Name, seen)
}

func watchAll[T any](ctx context.Context, in dynamic.ResourceInterface, name string, seen func(*T)) {
	each(ctx, in, name, func(u *unstructured.Unstructured) (*T, bool) {
		if object, err := typed[T](u); err == nil {
			seen(object)
		}
		return nil, false
	})
}

// Armed is a condition for WaitAutopilot: from now on, the service stores an alarm of the database.
func Armed(a *v1alpha1.RdsAutopilot) bool {
	return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionArmed)
}

// PatchRds changes the Rds by a merge patch, as a person would.
func (d *DB) PatchRds(ctx context.Context, patch string) error {
	return mergePatch(ctx, d.world.rdss(d.Namespace), d.Name, patch)
}

// PatchAutopilot changes the RdsAutopilot by a merge patch, as a person would. It does not change the status.
func (d *DB) PatchAutopilot(ctx context.Context, patch string) error {
	return mergePatch(ctx, d.world.autopilots(d.Namespace), d.Name, patch)
}

// CreateAutopilot creates the RdsAutopilot with a spec in JSON.
func (d *DB) CreateAutopilot(ctx context.Context, spec string) error {
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, v1alpha1.GroupVersion(), v1alpha1.Kind, d.Name, spec)
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		return fmt.Errorf("create RdsAutopilot %s: %w", d.Name, err)
	}
	_, err := d.world.autopilots(d.Namespace).Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return fmt.Errorf("create RdsAutopilot %s: %w", d.Name, err)
	}
	return nil
}

func mergePatch(ctx context.Context, in dynamic.ResourceInterface, name, patch string, subresource ...string) error {
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	_, err := in.Patch(ctx, name, types.MergePatchType, []byte(patch), options, subresource...)
	if err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	return nil
}
