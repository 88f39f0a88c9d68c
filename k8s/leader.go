// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Lease configures the leader election.
type Lease struct {
	Namespace     string        // of the lease; empty means the pod's own
	Pod           string        // empty means the host name, which Kubernetes truncates to 63 characters
	Duration      time.Duration // how long a lease is valid without renewal
	RenewDeadline time.Duration // how long a leader tries to renew its lease before it stops
	RetryPeriod   time.Duration // between two tries
	// OnChange is called with true when this replica starts to lead, and with false when it stops.
	OnChange func(leading bool)
}

// DefaultLease returns a lease with its times. The library waits up to 2.2 retry periods between two tries, and sees
// the last renewal of a killed leader one try late, so that the next replica leads within 20 seconds.
func DefaultLease() Lease {
	return Lease{Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second}
}

// Lead waits for the lease and calls run with a context that ends with ctx or with the lease. It returns after run
// has returned: nil if ctx has ended or run has finished, otherwise ErrLeaseLost. It releases the lease only after
// run has returned, so that two leaders never work at the same time.
func (c *Cluster) Lead(ctx context.Context, lease Lease, run func(context.Context)) error {
	namespace, err := LeaseNamespace(lease.Namespace)
	if err != nil {
		return err
	}
	lock, err := c.lock(namespace, lease)
	if err != nil {
		return err
	}

	electing, stop := context.WithCancel(withLog(context.WithoutCancel(ctx), c.log))
	defer stop()
	var term sync.Once
	interrupted := false // the lease has ended before run
	serve := func(leading context.Context) {
		defer stop()
		leading, end := context.WithCancel(leading)
		defer end()
		defer context.AfterFunc(ctx, end)()
		if ctx.Err() != nil || leading.Err() != nil {
			return
		}
		lease.OnChange(true)
		defer lease.OnChange(false)
		run(leading)
		interrupted = leading.Err() != nil && ctx.Err() == nil
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		Name:            self,
		LeaseDuration:   lease.Duration,
		RenewDeadline:   lease.RenewDeadline,
		RetryPeriod:     lease.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { term.Do(func() { serve(leading) }) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare leader election: %w", err)
	}

	// Before this replica leads, the end of ctx ends the election. Afterwards, the end of run does.
	waiting := context.AfterFunc(ctx, func() { term.Do(stop) })
	defer waiting()
	elector.Run(electing)
	lost := electing.Err() == nil // false if run has noticed it and has returned
	term.Do(func() {})            // wait for run, and prevent a late start
	if (lost || interrupted) && ctx.Err() == nil {
		return ErrLeaseLost
	}
	return nil
}

func (c *Cluster) lock(namespace string, lease Lease) (resourcelock.Interface, error) {
	// After the deadline the library also tries to release the lease before it stops the leader. With a quarter of
	// the deadline for each request, a leader without a connection stops before its lease expires.
	client, err := coordinationv1client.NewForConfigAndClient(c.config,
		&http.Client{Transport: c.transport, Timeout: lease.RenewDeadline / 4})
	if err != nil {
		return nil, fmt.Errorf("configure the client for leases: %w", err)
	}
	pod := lease.Pod
	if pod == "" {
		if pod, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find an identity for the lease: %w", err)
		}
	}
	identity := pod + "_" + string(uuid.NewUUID()) // a pod's name cannot contain the separator
	return &resourcelock.LeaseLock{
		Labels:     c.labels,
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: self},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}

// LeaseNamespace returns the given namespace, or the pod's if it is empty. It returns an error if the process does not
// run in a pod.
func LeaseNamespace(namespace string) (string, error) {
	if namespace != "" {
		return namespace, nil
	}
	content, err := os.ReadFile(namespaceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("not in a pod: a namespace for the lease is needed")
	}
	if err != nil {
		return "", fmt.Errorf("read the pod's namespace: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
