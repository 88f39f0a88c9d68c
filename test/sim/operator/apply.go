// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errGone means that the Rds was deleted after its snapshot was taken.
var errGone = errors.New("the Rds is gone")

// Pause stops the operator as if its process were frozen: after Pause has returned, no snapshot is applied. Snapshots
// queue up.
func (o *Operator) Pause() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.paused {
		o.turn <- struct{}{}
		o.paused = true
	}
}

// Resume ends a pause. The operator applies the queued snapshots first, the oldest first.
func (o *Operator) Resume() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.paused {
		<-o.turn
		o.paused = false
	}
}

// next applies one snapshot. It returns false after the context has ended.
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
	err := o.apply(ctx, snap)
	if err == nil || errors.Is(err, errGone) || o.queue.NumRequeues(snap) >= maxRetries {
		o.queue.Forget(snap)
	} else {
		o.queue.AddRateLimited(snap)
	}
	return true
}

// apply applies one snapshot. After an error, the operator retries the same snapshot.
func (o *Operator) apply(ctx context.Context, snap *Rds) error {
	inst, err := o.Cloud.find(snap.Name)
	if err != nil {
		return err
	}
	if inst == nil {
		return fmt.Errorf("the cloud has no instance %s", snap.Name)
	}
	snap.Status.ID, snap.Status.IP, snap.Status.Status = inst.id, inst.ip, inst.status
	if err := o.write(ctx, snap); err != nil {
		return err
	}
	if inst.status != statusActive {
		return fmt.Errorf("the instance is in %s", inst.status)
	}
	resize := snap.Spec.FlavorRef != inst.flavor
	if snap.Spec.VolumeSize > inst.volumeGB {
		if err := o.Cloud.enlarge(inst.id, snap.Spec.VolumeSize); err != nil {
			return fmt.Errorf("enlarge to %d GB: %w", snap.Spec.VolumeSize, err)
		}
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
	return nil
}

// write updates the whole object. If another writer has changed it meanwhile, that write comes as a snapshot of its own,
// so the conflict is no error.
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
