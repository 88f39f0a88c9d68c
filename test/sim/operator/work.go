// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errGone is an Rds that was deleted since its snapshot was taken.
var errGone = errors.New("the Rds is gone")

// Pause stops the operator as if its process were frozen: when it returns, nothing is being worked on. Snapshots queue up.
func (o *Operator) Pause() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.paused {
		o.turn <- struct{}{}
		o.paused = true
	}
}

// Resume works off what has queued up, oldest first, and goes on.
func (o *Operator) Resume() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.paused {
		<-o.turn
		o.paused = false
	}
}

// next works on one snapshot, and returns false at the end.
func (o *Operator) next(ctx context.Context) bool {
	snap, stop := o.queue.Get()
	if stop {
		return false
	}
	defer o.queue.Done(snap)
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return false
	}
	err := o.work(ctx, snap)
	switch {
	case err == nil, errors.Is(err, errGone), o.queue.NumRequeues(snap) >= maxRetries:
		o.queue.Forget(snap)
		o.done(snap)
	default:
		o.report(snap, Act{What: Postpone, Err: err})
		o.queue.AddRateLimited(snap)
	}
	return true
}

// work applies one snapshot. An error means that it is to be tried again, just as it is.
func (o *Operator) work(ctx context.Context, snap *Rds) error {
	inst, err := o.instance(ctx, snap)
	if err != nil {
		return err
	}
	snap.Status.ID, snap.Status.IP, snap.Status.Status = inst.id, inst.ip, inst.status
	if err := o.write(ctx, snap); err != nil {
		return err
	}
	if inst.status != statusActive {
		o.keep(snap)
		return fmt.Errorf("the instance is in %s", inst.status)
	}
	if o.waits(snap) {
		return nil
	}
	resize := snap.Spec.FlavorRef != inst.flavor
	if snap.Spec.VolumeSize > inst.volumeGB {
		if err := o.Cloud.enlarge(inst.id, snap.Spec.VolumeSize); err != nil {
			return fmt.Errorf("enlarge to %d GB: %w", snap.Spec.VolumeSize, err)
		}
		o.report(snap, Act{What: Enlarge, From: strconv.Itoa(inst.volumeGB), To: strconv.Itoa(snap.Spec.VolumeSize)})
		if resize {
			return errors.New("the flavor comes after the volume")
		}
		return nil
	}
	if !resize {
		return nil
	}
	if err := o.Cloud.resize(inst.id, snap.Spec.FlavorRef); err != nil {
		return fmt.Errorf("resize to %s: %w", snap.Spec.FlavorRef, err)
	}
	o.report(snap, Act{What: Resize, From: inst.flavor, To: snap.Spec.FlavorRef})
	o.resized(snap, inst.flavor)
	return nil
}

func (o *Operator) instance(ctx context.Context, snap *Rds) (*instance, error) {
	inst, err := o.Cloud.find(snap.Name)
	if err != nil || inst != nil {
		return inst, err
	}
	if o.Create == nil {
		return nil, fmt.Errorf("the cloud has no instance %s", snap.Name)
	}
	if err := o.Create(ctx, *snap); err != nil {
		return nil, fmt.Errorf("create instance %s: %w", snap.Name, err)
	}
	o.report(snap, Act{What: Create, To: snap.Name})
	if inst, err = o.Cloud.find(snap.Name); err == nil && inst == nil {
		err = fmt.Errorf("the cloud has no instance %s yet", snap.Name)
	}
	return inst, err
}

// write puts the whole object back. An object that was written by others since is left to the snapshot that comes of
// that, and this one is worked on all the same.
func (o *Operator) write(ctx context.Context, snap *Rds) error {
	object, err := snap.unstructured()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = o.client.Resource(Resource()).Namespace(snap.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		return nil
	case apierrors.IsNotFound(err):
		return errGone
	case err != nil:
		return fmt.Errorf("update Rds %s/%s: %w", snap.Namespace, snap.Name, err)
	}
	return nil
}

func (o *Operator) report(snap *Rds, a Act) {
	a.Namespace, a.Name = snap.Namespace, snap.Name
	o.Report(a)
}
