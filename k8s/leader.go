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

// namespaceFile is where a pod finds its namespace, beside its ServiceAccount's token.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// identitySeparator stands between the name of the pod and what makes the identity unique; a pod's name cannot hold it.
const identitySeparator = "_"

// Lease says how the leader is found.
type Lease struct {
	// Namespace of the lease; empty means the pod's own.
	Namespace string
	// Pod is the name of this pod; empty means the host's, which is cut at 63 characters in a pod.
	Pod string
	// Duration for which a lease is valid without renewal, RenewDeadline after which a leader that cannot renew it gives
	// up, and RetryPeriod between tries: 15 s, 10 s and 1 s where zero. The library waits up to 2.2 periods between two
	// tries, and sees the last renewal of a leader that was killed one try late: the next one leads within 20 s.
	Duration, RenewDeadline, RetryPeriod time.Duration
	// OnLeader is called with the name of the pod that leads, whenever it is another one.
	OnLeader func(pod string)
	// OnChange is called with true when this replica begins to lead, and with false once it does not any more.
	OnChange func(leading bool)
}

// Lead waits for the lease, calls run with a context that ends with ctx or with the lease, and returns once run has
// returned: nil when ctx ended or run was through, else ErrLeaseLost. The lease is given up only after run has returned,
// so that the next leader finds nobody at work.
func (c *Cluster) Lead(ctx context.Context, lease Lease, run func(context.Context)) error {
	namespace, err := orOwnNamespace(lease.Namespace)
	if err != nil {
		return err
	}
	lease.Namespace = namespace
	lease = lease.withDefaults()
	lock, err := c.lock(lease)
	if err != nil {
		return err
	}

	electing, stop := context.WithCancel(withLog(context.WithoutCancel(ctx), c.log))
	defer stop()
	var term sync.Once
	cut := false // the lease ended before run did
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
		cut = leading.Err() != nil && ctx.Err() == nil
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
			OnNewLeader: func(identity string) {
				pod, _, _ := strings.Cut(identity, identitySeparator)
				lease.OnLeader(pod)
			},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare leader election: %w", err)
	}

	// While it leads, run decides when the election ends; before, ctx does.
	waiting := context.AfterFunc(ctx, func() { term.Do(stop) })
	defer waiting()
	elector.Run(electing)
	lost := electing.Err() == nil // unless run has heard of it and returned by now
	term.Do(func() {})            // waits for run, and lets a start that comes late do nothing
	if (lost || cut) && ctx.Err() == nil {
		return ErrLeaseLost
	}
	return nil
}

func (l Lease) withDefaults() Lease {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Duration, 15 * time.Second}, {&l.RenewDeadline, 10 * time.Second}, {&l.RetryPeriod, time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if l.OnChange == nil {
		l.OnChange = func(bool) {}
	}
	if l.OnLeader == nil {
		l.OnLeader = func(string) {}
	}
	return l
}

func (c *Cluster) lock(lease Lease) (resourcelock.Interface, error) {
	// The library gives the lease up once it could not renew it until the deadline and then tried to release it. A quarter
	// each for those requests, and a leader that is cut off stops before its lease runs out.
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
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: lease.Namespace, Name: self},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: pod + identitySeparator + string(uuid.NewUUID())},
	}, nil
}

func orOwnNamespace(namespace string) (string, error) {
	if namespace != "" {
		return namespace, nil
	}
	return OwnNamespace()
}

// OwnNamespace is the pod's own; an error where this is none.
func OwnNamespace() (string, error) { return ownNamespace(namespaceFile) }

func ownNamespace(file string) (string, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("not in a pod: a namespace for the lease is needed")
	}
	if err != nil {
		return "", fmt.Errorf("read the pod's namespace: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
