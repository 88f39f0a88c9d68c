// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// waitLimit is the deadline of a wait if the caller's context has none.
const waitLimit = 10 * time.Minute

// delays returns growing delays between two checks, because a check of hundreds of objects is expensive.
func delays() wait.DelayFunc {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.2, Steps: 20, Cap: time.Second}.DelayFunc()
}

// Eventually calls done until it returns true. It returns an error with the last error of done at the deadline of ctx, or after
// ten minutes if ctx has none.
func Eventually(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	var last error
	err := delays().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return ok && err == nil, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waited in vain until %s: %w", what, err), last)
	}
	return nil
}

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, waitLimit)
}

// until returns the first version of an object that fulfils the condition. It checks every version. It continues after an outage
// of the API server.
func until[T any](ctx context.Context, in dynamic.ResourceInterface, name, what string, condition func(*T) bool) (*T, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	var last *unstructured.Unstructured
	found := each(ctx, in, name, func(u *unstructured.Unstructured) (*T, bool) {
		last = u
		object, err := typed[T](u)
		return object, err == nil && condition(object)
	})
	if found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("waited in vain until %s: %w; last seen: %s", what, ctx.Err(), shown(name, last))
}

// each calls check with every version of an object, the present one first, until check returns true or the context ends.
func each[T any](ctx context.Context, in dynamic.ResourceInterface, name string, check func(*unstructured.Unstructured) (*T, bool)) *T {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	var found *T
	watchOnce := func(ctx context.Context) (bool, error) {
		versions, err := in.Watch(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return false, nil // repeat
		}
		defer versions.Stop()
		for event := range versions.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type != watch.Added && event.Type != watch.Modified {
				continue
			}
			if object, done := check(u); done {
				found = object
				return true, nil
			}
		}
		return false, nil
	}
	// If it ends with the context, found is nil.
	_ = delays().Until(ctx, true, true, watchOnce)
	return found
}

func typed[T any](u *unstructured.Unstructured) (*T, error) {
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, fmt.Errorf("decode %s: %w", u.GetName(), err)
	}
	return object, nil
}

// shown returns the text of an object for an error message.
func shown(name string, u *unstructured.Unstructured) string {
	if u == nil {
		return "there is no " + name
	}
	text, err := json.Marshal(map[string]any{"spec": u.Object["spec"], "status": u.Object["status"]})
	if err != nil {
		return err.Error()
	}
	return string(text)
}
